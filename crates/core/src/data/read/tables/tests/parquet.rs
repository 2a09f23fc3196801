//! A Parquet file made for a test.

/// A file of three rows, made by the crate itself.
pub(super) fn parquet_file() -> Vec<u8> {
    use std::sync::Arc;

    use parquet::data_type::{
        BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type,
    };
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    let schema = "message schema {
        required int32 id;
        optional double age;
        optional binary city (UTF8);
        required boolean member;
        required int32 day (DATE);
        required int64 seen (TIMESTAMP(MILLIS, true));
        required int32 price (DECIMAL(9, 2));
        required group bag (LIST) { repeated group list { required int32 element; } }
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut number = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        match number {
            0 => column
                .typed::<Int32Type>()
                .write_batch(&[1, 2, 3], None, None),
            1 => column
                .typed::<DoubleType>()
                .write_batch(&[33.5, 0.1], Some(&[1, 0, 1]), None),
            2 => {
                let cities = [ByteArray::from("Bonn"), ByteArray::from("Köln")];
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&cities, Some(&[1, 1, 0]), None)
            }
            3 => column
                .typed::<BoolType>()
                .write_batch(&[true, false, true], None, None),
            4 => column
                .typed::<Int32Type>()
                .write_batch(&[19_753, 0, -1], None, None),
            5 => column
                .typed::<Int64Type>()
                .write_batch(&[0, 1_706_704_205_001, -1], None, None),
            6 => column
                .typed::<Int32Type>()
                .write_batch(&[1999, -5, 100], None, None),
            _ => column.typed::<Int32Type>().write_batch(
                &[1, 2, 3, 4],
                Some(&[1, 1, 1, 1]),
                Some(&[0, 1, 0, 0]),
            ),
        }
        .unwrap();
        column.close().unwrap();
        number += 1;
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

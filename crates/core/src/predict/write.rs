//! Predictions as files: CSV, JSON lines, NumPy arrays, masks and images as PNG, and Parquet.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

#[cfg(feature = "parquet")]
use super::parquet::Table;
use super::table::{cells, columns};
use super::{Meaning, Prediction};
use crate::data::DataError;
use crate::data::picture::png;
use crate::show::{plain_io_error, write_remedy};
use crate::spec::task::TaskKind;

/// The format of predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// One row per item.
    Csv,
    /// One JSON object per item.
    JsonLines,
    /// One NumPy array: probabilities, numbers, or masks.
    Npy,
    /// A folder of masks or images, one per item.
    Png,
    /// An Apache Parquet table.
    Parquet,
}

impl OutputFormat {
    /// The format that a file name implies, if any.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.to_string_lossy();
        if name.ends_with('/') || path.is_dir() {
            return Some(Self::Png);
        }
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            "npy" => Some(Self::Npy),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }
}

/// What is written for each item besides its prediction.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The identifier of items: `row`, `file` or `item`.
    pub id: &'static str,
    /// Whether identifiers are numbers: of rows, lines or items.
    pub is_numbered: bool,
    /// Columns that are copied to the output.
    pub keep: Vec<String>,
}

/// The keys of JSON objects that are no columns of tables.
const KEYS: [&str; 9] = [
    "alternatives",
    "classes",
    "deviation",
    "outputs",
    "prediction",
    "probabilities",
    "scores",
    "shape",
    "values",
];

/// Writes predictions as they arrive.
pub struct Writer<W: Write> {
    layout: Layout,
    out: Out<W>,
    num_items: u64,
}

enum Out<W: Write> {
    /// With the names of the columns, until they are written before the first row: data that is refused as a whole has
    /// no output.
    Rows(Box<csv::Writer<W>>, Option<Vec<String>>),
    Lines(W),
    /// The values of an array, and the number per item; the header is written in front when the number of items is
    /// known.
    Values(W, io::BufWriter<File>),
    /// A folder, the names in it, and the table of its files.
    Folder(PathBuf, BTreeSet<String>, W),
    /// A table in a temporary file, which is copied at the end.
    #[cfg(feature = "parquet")]
    Table(W, Table),
}

impl<W: Write> Writer<W> {
    /// Starts a file, or the table of a folder of masks.
    pub fn new(
        format: OutputFormat,
        layout: Layout,
        meaning: &Meaning,
        mut out: W,
        folder: Option<&Path>,
    ) -> Result<Self, DataError> {
        let layout = Layout {
            keep: kept_names(&layout, meaning)?,
            ..layout
        };
        let has_masks = meaning.task() == TaskKind::Segmentation && meaning.shape().len() == 2;
        let has_images = has_masks || meaning.has_pictures();
        let out = match (format, folder) {
            (OutputFormat::Png, _) if !has_images => {
                return Err(DataError::new(
                    "a folder of images needs a run whose predictions are masks or images",
                )
                .help("write to a file that ends in `.csv`, `.jsonl` or `.npy`"));
            }
            (OutputFormat::Png, None) => {
                return Err(
                    DataError::new("images are written to a folder, but none is given")
                        .help("set one with `--out FOLDER/`"),
                );
            }
            (OutputFormat::Png, Some(folder)) => {
                let what = match meaning.task() {
                    TaskKind::Segmentation => "mask",
                    _ => "image",
                };
                let kept = layout.keep.iter();
                let kept: String = kept.map(|name| format!(",{}", csv_cell(name))).collect();
                let head = format!("{},{what}{kept}\n", layout.id);
                out.write_all(head.as_bytes()).map_err(|e| unwritable(&e))?;
                Out::Folder(folder.to_owned(), BTreeSet::new(), out)
            }
            (OutputFormat::Csv, _) => {
                let names = columns(&layout, meaning).into_iter();
                let names = names.map(|(name, _)| name);
                let rows = csv::Writer::from_writer(out);
                Out::Rows(Box::new(rows), Some(names.collect()))
            }
            (OutputFormat::JsonLines, _) => Out::Lines(out),
            (OutputFormat::Npy, _) => {
                let values = tempfile::tempfile().map_err(|e| unwritable(&e))?;
                Out::Values(out, io::BufWriter::new(values))
            }
            #[cfg(feature = "parquet")]
            (OutputFormat::Parquet, _) => {
                let file = tempfile::tempfile().map_err(|e| unwritable(&e))?;
                let table =
                    Table::new(file, &columns(&layout, meaning)).map_err(|e| unwritable(&e))?;
                Out::Table(out, table)
            }
            #[cfg(not(feature = "parquet"))]
            (OutputFormat::Parquet, _) => {
                return Err(DataError::new("this build of runner does not write Parquet").help(
                    "build it with `--features parquet`, or write to a file that ends in `.csv`, `.jsonl` or `.npy`",
                ));
            }
        };
        Ok(Self {
            layout,
            out,
            num_items: 0,
        })
    }

    /// Writes the prediction of the next item, and those of its other outputs. Arrays and masks have only the first.
    pub fn add(
        &mut self,
        meaning: &Meaning,
        id: &str,
        kept: &[String],
        (prediction, more): (&Prediction, &[Prediction]),
    ) -> Result<(), DataError> {
        self.num_items += 1;
        let written = match &mut self.out {
            Out::Rows(rows, head) => {
                let mut row = Vec::new();
                cells(meaning, id, kept, (prediction, more), &mut |cell| {
                    row.push(cell.text())
                });
                let head = head.take();
                let mut records = head.iter().chain([&row]);
                records
                    .try_for_each(|record| rows.write_record(record))
                    .map_err(io::Error::from)
            }
            Out::Lines(out) => {
                let mut line = Map::new();
                line.insert(self.layout.id.to_owned(), id_of(self.layout.id, id));
                for (name, value) in self.layout.keep.iter().zip(kept) {
                    line.insert(name.clone(), json!(value));
                }
                object(meaning, prediction, &mut line);
                if !more.is_empty() {
                    let outputs = meaning.more().iter().zip(more);
                    let outputs = outputs.map(|((name, meaning), prediction)| {
                        let mut output = Map::new();
                        object(meaning, prediction, &mut output);
                        (name.clone(), Json::Object(output))
                    });
                    line.insert("outputs".into(), Json::Object(outputs.collect()));
                }
                writeln!(out, "{}", Json::Object(line))
            }
            Out::Values(_, values) => write_values(prediction, values),
            Out::Folder(folder, names, table) => {
                let name = mask_name(id, names);
                let path = folder.join(&name);
                write_image(meaning, prediction, &path).and_then(|()| {
                    let kept = kept.iter().map(|value| format!(",{}", csv_cell(value)));
                    let kept: String = kept.collect();
                    writeln!(table, "{},{}{kept}", csv_cell(id), csv_cell(&name))
                })
            }
            #[cfg(feature = "parquet")]
            Out::Table(_, table) => table.add(|put| {
                cells(meaning, id, kept, (prediction, more), put);
            }),
        };
        written.map_err(|e| unwritable(&e))
    }

    /// Ends the file.
    pub fn finish(self, meaning: &Meaning) -> Result<W, DataError> {
        let finish = || -> io::Result<W> {
            match self.out {
                Out::Rows(mut rows, head) => {
                    if let Some(head) = head {
                        rows.write_record(&head)?;
                    }
                    rows.into_inner()
                        .map_err(|e| io::Error::other(e.to_string()))
                }
                Out::Lines(mut out) | Out::Folder(_, _, mut out) => out.flush().map(|()| out),
                Out::Values(mut out, values) => {
                    let mut values = values.into_inner().map_err(|e| e.into_error())?;
                    write_head(meaning, self.num_items, &mut out)?;
                    values.rewind()?;
                    io::copy(&mut values, &mut out)?;
                    out.flush()?;
                    Ok(out)
                }
                #[cfg(feature = "parquet")]
                Out::Table(mut out, table) => {
                    let mut file = table.finish()?;
                    file.rewind()?;
                    io::copy(&mut file, &mut out)?;
                    out.flush()?;
                    Ok(out)
                }
            }
        };
        finish().map_err(|e| unwritable(&e))
    }
}

/// The names of copied columns in the output, which has columns and keys of its own: `data_price` if it has a `price`.
fn kept_names(layout: &Layout, meaning: &Meaning) -> Result<Vec<String>, DataError> {
    let without = Layout {
        keep: Vec::new(),
        ..layout.clone()
    };
    let own = columns(&without, meaning).into_iter();
    let own: BTreeSet<String> = own
        .map(|(name, _)| name)
        .chain(KEYS.map(str::to_owned))
        .collect();
    let mut names: Vec<String> = Vec::new();
    for name in &layout.keep {
        let shown = if own.contains(name) {
            format!("data_{name}")
        } else {
            name.clone()
        };
        if names.contains(&shown) {
            let message = format!("`--keep` copies two columns to `{shown}`");
            return Err(DataError::new(message).help("omit one of them"));
        }
        names.push(shown);
    }
    Ok(names)
}

/// A single-precision number in its shortest form.
fn single(value: f32) -> Json {
    json!(value.to_string().parse::<f64>().unwrap_or(f64::from(value)))
}

fn id_of(kind: &str, id: &str) -> Json {
    match id.parse::<u64>() {
        Ok(number) if kind != "file" => json!(number),
        _ => json!(id),
    }
}

/// The keys of a JSON object after its identifier.
fn object(meaning: &Meaning, prediction: &Prediction, line: &mut Map<String, Json>) {
    let named = |values: &[f32]| {
        let each = values.iter().enumerate();
        let pairs = each.map(|(at, value)| (meaning.name(at), single(*value)));
        Json::Object(pairs.collect())
    };
    let mut put = |key: &str, value: Json| {
        line.insert(key.to_owned(), value);
    };
    match prediction {
        Prediction::Class {
            class,
            probability,
            probabilities,
            ..
        } => {
            put("prediction", json!(class));
            match probability {
                Some(probability) => {
                    put("probability", single(*probability));
                    put("probabilities", named(probabilities));
                }
                None => put("scores", named(probabilities)),
            }
        }
        Prediction::Labels {
            labels,
            probabilities,
        } => {
            put("labels", json!(labels));
            put("probabilities", named(probabilities));
        }
        Prediction::Values { values, deviations } => {
            let named = |values: &[f64]| {
                let each = values.iter().enumerate();
                let pairs = each.map(|(at, value)| (meaning.name(at), json!(value)));
                Json::Object(pairs.collect())
            };
            put("prediction", named(values));
            if !deviations.is_empty() {
                put("deviation", named(deviations));
            }
        }
        Prediction::Classes { shape, classes } => {
            put("shape", json!(shape));
            put("classes", json!(classes));
        }
        Prediction::Item { shape, values } => {
            put("shape", json!(shape));
            put("values", values.iter().copied().map(single).collect());
        }
        Prediction::NextToken {
            token,
            probability,
            alternatives,
            ..
        } => {
            put("token", json!(token));
            put("probability", json!(probability));
            let pairs = alternatives
                .iter()
                .map(|(token, p)| (token.clone(), json!(p)));
            put("alternatives", Json::Object(pairs.collect()));
        }
    }
}

/// The numbers of an item in an array, little-endian.
fn write_values(prediction: &Prediction, out: &mut impl Write) -> io::Result<()> {
    let singles = |values: &[f32], out: &mut dyn Write| {
        let mut each = values.iter();
        each.try_for_each(|value| out.write_all(&value.to_le_bytes()))
    };
    match prediction {
        Prediction::Class { probabilities, .. } | Prediction::Labels { probabilities, .. } => {
            singles(probabilities, out)
        }
        Prediction::Item { values, .. } => singles(values, out),
        Prediction::Values { values, .. } => {
            let mut each = values.iter();
            each.try_for_each(|value| out.write_all(&value.to_le_bytes()))
        }
        Prediction::Classes { classes, .. } => {
            let mut each = classes.iter();
            each.try_for_each(|class| out.write_all(&class.to_le_bytes()))
        }
        Prediction::NextToken { id, .. } => out.write_all(&id.to_le_bytes()),
    }
}

/// The header of an array with this many items.
fn write_head(meaning: &Meaning, num: u64, out: &mut impl Write) -> io::Result<()> {
    use npyz::WriterBuilder;
    let dtype = match meaning.task() {
        TaskKind::Regression => "<f8",
        TaskKind::Segmentation | TaskKind::NextToken | TaskKind::MaskedToken => "<u4",
        _ => "<f4",
    };
    let mut shape = vec![num];
    if !meaning.task().is_of_tokens() {
        shape.extend(meaning.shape().iter().map(|size| *size as u64));
    }
    let dtype = dtype.parse().map_err(io::Error::other)?;
    npyz::WriteOptions::<u8>::new()
        .dtype(npyz::DType::Plain(dtype))
        .shape(&shape)
        .writer(out)
        .write_header_only()
        .map(|_| ())
}

/// The name of an item's mask, which no earlier one has, in any case of its letters.
fn mask_name(id: &str, names: &mut BTreeSet<String>) -> String {
    let stem = match id.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => id,
    };
    // Images from different folders get different names, and no name leads out of the folder of masks.
    let plain = |stem: &str| {
        stem.replace(['/', '\\'], "__")
            .trim_start_matches('.')
            .to_owned()
    };
    let (short, long) = (plain(stem), plain(id));
    let others = (2..).map(|number| format!("{long}-{number}"));
    let mut all = [short, long.clone()].into_iter().chain(others);
    let free = all.find(|name| names.insert(name.to_lowercase()));
    format!("{}.png", free.unwrap_or(long))
}

/// The names of the images that the table of an earlier folder says it has.
pub fn pictures_of(table: &Path) -> BTreeSet<String> {
    let rows = csv::Reader::from_path(table).into_iter();
    let rows = rows.flat_map(csv::Reader::into_records).flatten();
    let names = rows.filter_map(|row| row.get(1).map(str::to_owned));
    names.collect()
}

fn write_image(meaning: &Meaning, prediction: &Prediction, path: &Path) -> io::Result<()> {
    let (shape, classes) = match prediction {
        Prediction::Classes { shape, classes } => (shape, classes),
        Prediction::Item { values, .. } => {
            let picture = meaning.picture(values);
            let bytes = picture.and_then(|picture| png(&picture));
            let bytes = bytes.ok_or_else(|| io::Error::other("an item is not an image"))?;
            return fs::write(path, bytes);
        }
        _ => return Ok(()),
    };
    let pixels: Option<Vec<u8>> = classes
        .iter()
        .map(|class| u8::try_from(*class).ok())
        .collect();
    let (Some(pixels), &[height, width]) = (pixels, &shape[..]) else {
        return Err(io::Error::other("a mask has more than 256 classes"));
    };
    let image = image::GrayImage::from_raw(width as u32, height as u32, pixels);
    let image = image.ok_or_else(|| io::Error::other("a mask has a different size"))?;
    image
        .save_with_format(path, image::ImageFormat::Png)
        .map_err(io::Error::other)
}

fn csv_cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn unwritable(error: &io::Error) -> DataError {
    DataError::new(format!(
        "the predictions cannot be written: {}",
        plain_io_error(error)
    ))
    .help(write_remedy(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_has_a_mask_of_its_own() {
        let mut names = BTreeSet::new();
        let ids = [
            "02.jpg",
            "02.png",
            "sub/00.png",
            "sub__00.png",
            "A.png",
            "a.png",
            "../x.png",
        ];
        let found = ids.map(|id| mask_name(id, &mut names));
        let expected = [
            "02.png",
            "02.png.png",
            "sub__00.png",
            "sub__00.png.png",
            "A.png",
            "a.png.png",
            "__x.png",
        ];
        assert_eq!(found, expected);
        assert_eq!(mask_name("02.png", &mut names), "02.png-2.png");
    }
}

//! Tables: CSV, JSON lines, Parquet.

use super::Watch;
use crate::data::DataError;
use crate::data::records::Writer;
use crate::spec::data::FilesSpec;

/// Reads the files into the writer.
pub fn read(_files: &FilesSpec, _writer: &mut Writer, _watch: Watch<'_>) -> Result<(), DataError> {
    Err(DataError::new("this format is not read yet"))
}

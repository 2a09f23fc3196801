//! Predictions as files: CSV, JSON lines, NumPy arrays, masks as PNG.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use super::{Meaning, Prediction};
use crate::data::DataError;
use crate::spec::document::plain_io_error;
use crate::spec::task::TaskKind;

/// The maximum number of classes with a column each.
const MOST_COLUMNS: usize = 100;

/// The format of predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// One row per item.
    Csv,
    /// One JSON object per item.
    JsonLines,
    /// One NumPy array: probabilities, numbers, or masks.
    Npy,
    /// A folder of masks, one per item.
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
        match path.extension()?.to_str()? {
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
    /// Columns that are copied to the output.
    pub keep: Vec<String>,
}

/// Writes predictions as they arrive.
pub struct Writer<W: Write> {
    format: OutputFormat,
    layout: Layout,
    out: Out<W>,
    num_items: u64,
}

enum Out<W: Write> {
    Rows(Box<csv::Writer<W>>),
    Lines(W),
    /// The values of an array, and the number per item; the header is written in front when the number of items is
    /// known.
    Values(W, io::BufWriter<File>),
    /// A folder, and the table of its files.
    Folder(PathBuf, W),
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
        let masks = meaning.task() == TaskKind::Segmentation;
        let out = match (format, folder) {
            (OutputFormat::Png, _) if !masks => {
                return Err(DataError::new(
                    "a folder of images can hold masks only, and this run does not predict masks",
                )
                .help("write to a file that ends in `.csv`, `.jsonl` or `.npy`"));
            }
            (OutputFormat::Png, Some(folder)) => {
                let head = format!("{},mask\n", layout.id);
                out.write_all(head.as_bytes()).map_err(|e| unwritable(&e))?;
                Out::Folder(folder.to_owned(), out)
            }
            (OutputFormat::Csv, _) => {
                let mut rows = csv::Writer::from_writer(out);
                rows.write_record(columns(&layout, meaning))
                    .map_err(|e| unwritable(&e.into()))?;
                Out::Rows(Box::new(rows))
            }
            (OutputFormat::JsonLines, _) => Out::Lines(out),
            (OutputFormat::Npy, _) => {
                let values = tempfile::tempfile().map_err(|e| unwritable(&e))?;
                Out::Values(out, io::BufWriter::new(values))
            }
            _ => {
                return Err(
                    DataError::new("this build of runner does not write Parquet")
                        .help("write to a file that ends in `.csv`, `.jsonl` or `.npy`"),
                );
            }
        };
        Ok(Self {
            format,
            layout,
            out,
            num_items: 0,
        })
    }

    /// Writes the prediction of the next item.
    pub fn add(
        &mut self,
        meaning: &Meaning,
        id: &str,
        kept: &[String],
        prediction: &Prediction,
    ) -> Result<(), DataError> {
        self.num_items += 1;
        let written = match &mut self.out {
            Out::Rows(rows) => {
                let mut row = vec![id.to_owned()];
                row.extend(kept.iter().cloned());
                cells(meaning, prediction, &mut row);
                rows.write_record(&row).map_err(io::Error::from)
            }
            Out::Lines(out) => {
                let mut line = Map::new();
                line.insert(self.layout.id.to_owned(), id_of(self.layout.id, id));
                for (name, value) in self.layout.keep.iter().zip(kept) {
                    line.insert(name.clone(), json!(value));
                }
                object(meaning, prediction, &mut line);
                writeln!(out, "{}", Json::Object(line))
            }
            Out::Values(_, values) => write_values(prediction, values),
            Out::Folder(folder, table) => {
                let name = mask_name(id);
                let path = folder.join(&name);
                write_mask(prediction, &path)
                    .and_then(|()| writeln!(table, "{},{}", csv_cell(id), csv_cell(&name)))
            }
        };
        written.map_err(|e| unwritable(&e))
    }

    /// Ends the file.
    pub fn finish(self, meaning: &Meaning) -> Result<W, DataError> {
        debug_assert!(self.format != OutputFormat::Parquet);
        let finish = || -> io::Result<W> {
            match self.out {
                Out::Rows(rows) => rows
                    .into_inner()
                    .map_err(|e| io::Error::other(e.to_string())),
                Out::Lines(mut out) | Out::Folder(_, mut out) => out.flush().map(|()| out),
                Out::Values(mut out, values) => {
                    let mut values = values.into_inner().map_err(|e| e.into_error())?;
                    write_head(meaning, self.num_items, &mut out)?;
                    values.rewind()?;
                    io::copy(&mut values, &mut out)?;
                    out.flush()?;
                    Ok(out)
                }
            }
        };
        finish().map_err(|e| unwritable(&e))
    }
}

/// The columns of a table of predictions.
fn columns(layout: &Layout, meaning: &Meaning) -> Vec<String> {
    let mut columns = vec![layout.id.to_owned()];
    columns.extend(layout.keep.iter().cloned());
    let names = meaning.names();
    let what = if meaning.has_probabilities() {
        "probability"
    } else {
        "score"
    };
    let each = |columns: &mut Vec<String>| {
        if names.len() <= MOST_COLUMNS {
            columns.extend(names.iter().map(|name| format!("{what}_{name}")));
        }
    };
    match meaning.task() {
        TaskKind::Classification => {
            columns.push("prediction".into());
            if meaning.has_probabilities() {
                columns.push("probability".into());
            }
            each(&mut columns);
        }
        TaskKind::MultiLabel => {
            columns.push("labels".into());
            each(&mut columns);
        }
        TaskKind::Regression => {
            columns.extend(names.iter().cloned());
            if meaning.has_deviations() {
                columns.extend(names.iter().map(|name| format!("{name}_deviation")));
            }
        }
        TaskKind::Segmentation => {
            columns.extend(names.iter().map(|name| format!("share_{name}")));
        }
        TaskKind::NextToken => columns.extend(["token", "probability"].map(str::to_owned)),
        TaskKind::Autoencoding => columns.push("values".into()),
    }
    columns
}

/// The values of a row after its identifier.
fn cells(meaning: &Meaning, prediction: &Prediction, row: &mut Vec<String>) {
    let numbers = |values: &[f32], row: &mut Vec<String>| {
        row.extend(values.iter().map(f32::to_string));
    };
    match prediction {
        Prediction::Class {
            class,
            probability,
            probabilities,
            ..
        } => {
            row.push(class.clone());
            row.extend(probability.map(|p| p.to_string()));
            if probabilities.len() <= MOST_COLUMNS {
                numbers(probabilities, row);
            }
        }
        Prediction::Labels {
            labels,
            probabilities,
        } => {
            row.push(labels.join("|"));
            if probabilities.len() <= MOST_COLUMNS {
                numbers(probabilities, row);
            }
        }
        Prediction::Values { values, deviations } => {
            row.extend(values.iter().chain(deviations).map(f64::to_string));
        }
        Prediction::Classes { classes, .. } => {
            let shares = shares(classes, meaning.names().len());
            row.extend(shares.iter().map(f64::to_string));
        }
        Prediction::Item { values, .. } => {
            let values: Vec<String> = values.iter().map(f32::to_string).collect();
            row.push(values.join(" "));
        }
        Prediction::NextToken {
            token, probability, ..
        } => row.extend([token.clone(), probability.to_string()]),
    }
}

/// A single-precision number in its shortest form.
fn single(value: f32) -> Json {
    json!(value.to_string().parse::<f64>().unwrap_or(f64::from(value)))
}

/// The share of each class among pixels.
fn shares(classes: &[u32], num_classes: usize) -> Vec<f64> {
    let mut counts = vec![0_u64; num_classes];
    for class in classes {
        if let Some(count) = counts.get_mut(*class as usize) {
            *count += 1;
        }
    }
    let total = classes.len().max(1) as f64;
    counts.iter().map(|count| *count as f64 / total).collect()
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
        TaskKind::Segmentation | TaskKind::NextToken => "<u4",
        _ => "<f4",
    };
    let mut shape = vec![num];
    if meaning.task() != TaskKind::NextToken {
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

/// The name of an item's mask.
fn mask_name(id: &str) -> String {
    let stem = match id.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => id,
    };
    // Images from different folders get different names, and no name leads out of the folder of masks.
    format!(
        "{}.png",
        stem.replace(['/', '\\'], "__").trim_start_matches('.')
    )
}

fn write_mask(prediction: &Prediction, path: &Path) -> io::Result<()> {
    let Prediction::Classes { shape, classes } = prediction else {
        return Ok(());
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
    .help("free some space, or write to another place")
}

//! A data source: files in the format of SVMlight and LIBSVM.

use std::fs;
use std::path::Path;

use burn_runner::parts::{DataPart, Items, Kind, Section, Unfit};
use serde::{Deserialize, Serialize};

/// Rows such as `+1 3:0.5 7:1`: a class, and the features that are not 0, counted from 1.
pub struct Svmlight;

#[derive(Serialize, Deserialize)]
pub struct Settings {
    path: String,
    num_features: usize,
}

impl DataPart for Svmlight {
    const NAME: &'static str = "svmlight";
    const DOC: &'static str =
        "A file in the format of SVMlight: a class and sparse features in each line.";
    type Settings = Settings;

    fn settings(section: &mut Section<'_>) -> Settings {
        Settings {
            path: section.field("path", Kind::Path, "The file.").required(),
            num_features: section
                .field("num_features", Kind::Int(1, 1 << 20), "Features of a row.")
                .required(),
        }
    }

    fn items(settings: &Settings, folder: &Path) -> Result<Items, Unfit> {
        let wrong = |message: String| Unfit::new("path", message, "correct the file");
        let path = folder.join(&settings.path);
        let text = fs::read_to_string(&path).map_err(|error| {
            let message = format!("cannot read `{}`: {error}", path.display());
            Unfit::new("path", message, "set `path` to a file that can be read")
        })?;
        let (mut values, mut labels) = (Vec::new(), Vec::new());
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let row = row(line, settings.num_features);
            let (label, features) =
                row.map_err(|error| wrong(format!("cannot read line {}: {error}", number + 1)))?;
            labels.push(label);
            values.extend(features);
        }
        // The labels in increasing order are the classes 0, 1, and so on.
        let mut classes = labels.clone();
        classes.sort_unstable();
        classes.dedup();
        let class = |label| classes.partition_point(|other| *other < label) as i32;
        let targets = labels.into_iter().map(class).collect();
        let items = Items::of_numbers(vec![settings.num_features], values);
        Ok(items.with_classes(classes.len(), targets))
    }
}

/// The label and the features of a line.
fn row(line: &str, num_features: usize) -> Result<(i32, Vec<f32>), String> {
    let mut words = line.split_whitespace();
    let label = words.next().unwrap_or_default();
    let label = label
        .parse()
        .map_err(|_| format!("the label `{label}` is not an integer"))?;
    let mut features = vec![0.0; num_features];
    for word in words {
        let pair = word.split_once(':');
        let pair = pair.and_then(|(at, value)| Some((at.parse().ok()?, value.parse().ok()?)));
        let (at, value): (usize, f32) =
            pair.ok_or_else(|| format!("`{word}` is not a feature such as `3:0.5`"))?;
        let feature = at.checked_sub(1).and_then(|at| features.get_mut(at));
        *feature
            .ok_or_else(|| format!("`{word}` is not one of the features 1 to {num_features}"))? =
            value;
    }
    Ok((label, features))
}

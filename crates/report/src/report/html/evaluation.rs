//! Plots and images of the errors of the selected trial.

use super::figures::{Figure, Image, Key, MAX_POINTS, Picture};
use crate::report::assessment::heat_of;
use crate::report::evaluation::pair;
use crate::report::model::Report;
use crate::report::numbers::short_number;
use crate::report::plot::*;
use crate::report::separation::plots;
use runner_core::data::picture::class_colour;
use runner_core::record::evaluation::{EpochPicture, Evaluated, Mistake, Sample};

/// Maximum number of regression targets with plots.
const MAX_TARGETS: usize = 4;

/// The confusion matrix as a heat map.
pub fn confusion(report: &Report) -> Option<Figure> {
    let found = &report.evaluation.as_ref()?.evaluation.found;
    let (Evaluated::Classification { confusion, .. } | Evaluated::Segmentation { confusion, .. }) =
        found
    else {
        return None;
    };
    if confusion.confusion.is_empty() {
        return None;
    }
    let classes = &confusion.classes;
    let svg = heat_of(confusion);
    let caption = "How many items of each class (row) are predicted as each class (column); the stronger the color, the larger the fraction of the class.";
    Some(Figure {
        is_wide: classes.len() > 12,
        ..Figure::new(svg, caption)
    })
}

/// ROC, precision by recall, and calibration.
pub fn probabilities(report: &Report) -> Vec<Figure> {
    let found = report.evaluation.as_ref().map(|of| &of.evaluation.found);
    let Some(
        Evaluated::Classification { separations, .. } | Evaluated::MultiLabel { separations, .. },
    ) = found
    else {
        return Vec::new();
    };
    let (drawn, names) = plots(separations);
    let figures = drawn
        .into_iter()
        .map(|one| Figure::new(one.svg, one.caption));
    let mut figures: Vec<Figure> = figures.collect();
    if let (Some(first), true) = (figures.first_mut(), names.len() > 1) {
        let keys = names.into_iter().enumerate();
        let keys = keys.map(|(series, name)| Key {
            series,
            mark: legend_mark(series),
            name,
        });
        first.legend = keys.collect();
    }
    figures
}

/// Predictions and residuals of each target.
pub fn residuals(report: &Report) -> Vec<Figure> {
    let Some(of) = &report.evaluation else {
        return Vec::new();
    };
    let Evaluated::Regression {
        targets,
        points,
        num_items,
        ..
    } = &of.evaluation.found
    else {
        return Vec::new();
    };
    let which = if points.len() as u64 == *num_items {
        String::new()
    } else {
        format!(
            " {} of {num_items} items: spread over the targets, including the worst.",
            points.len()
        )
    };
    let mut figures = Vec::new();
    for (at, target) in targets.iter().enumerate().take(MAX_TARGETS) {
        let pairs = points
            .iter()
            .filter_map(|point| Some((point, pair(point, at)?)));
        let pairs: Vec<_> = pairs.take(MAX_POINTS).collect();
        let dots = |residual: bool| -> Vec<Dot> {
            let dots = pairs.iter().map(|(point, (wanted, predicted))| Dot {
                x: if residual { *predicted } else { *wanted },
                y: if residual {
                    predicted - wanted
                } else {
                    *predicted
                },
                series: 0,
                title: format!(
                    "{}: target {}, predicted {}",
                    point.place,
                    short_number(*wanted),
                    short_number(*predicted)
                ),
            });
            dots.collect()
        };
        let plots = [
            (
                "target",
                "predicted",
                false,
                Reference::Diagonal,
                "equal on the line",
            ),
            (
                "predicted",
                "predicted minus target",
                true,
                Reference::Zero,
                "no error on the line",
            ),
        ];
        for (x_label, y_label, residual, line, meaning) in plots {
            let svg = scatter(&Scatter {
                description: &format!("{y_label} by {x_label}, of {} items", pairs.len()),
                x_label,
                y_label,
                is_log: false,
                y: Kind::Linear,
                points: &dots(residual),
                line,
            });
            figures.push(Figure::new(
                svg,
                format!("`{target}`: {y_label} by {x_label}; {meaning}.{which}"),
            ));
        }
    }
    figures
}

/// The images of a section.
pub fn pictures(report: &Report, id: &str) -> Vec<Picture> {
    let found = report.evaluation.as_ref().map(|of| &of.evaluation.found);
    match (id, found) {
        ("mistakes", Some(Evaluated::Classification { mistakes, .. })) => {
            mistakes.iter().filter_map(of_mistake).collect()
        }
        (
            "samples",
            Some(Evaluated::Segmentation { samples, .. } | Evaluated::Autoencoding { samples, .. }),
        ) => samples.iter().map(of_sample).collect(),
        (
            "samples",
            Some(Evaluated::Generation {
                pictures, classes, ..
            }),
        ) => {
            let numbered = (1..).zip(pictures);
            let one = |(at, picture): (usize, &String)| of_generated(at, picture, classes);
            numbered.map(one).collect()
        }
        ("samples_by_epoch", Some(Evaluated::Generation { by_epoch, .. })) => {
            by_epoch.iter().map(of_epoch).collect()
        }
        _ => Vec::new(),
    }
}

fn of_mistake(mistake: &Mistake) -> Option<Picture> {
    Some(Picture {
        images: vec![Image {
            source: mistake.picture.clone()?,
            name: "",
        }],
        caption: format!(
            "`{}`, predicted `{}`: {}",
            mistake.target, mistake.predicted, mistake.place
        ),
    })
}

fn of_sample(sample: &Sample) -> Picture {
    let predicted = match sample.target {
        Some(_) => "predicted",
        None => "reconstructed",
    };
    let images = [
        (sample.input.clone(), "item"),
        (sample.target.clone(), "mask"),
        (Some(sample.predicted.clone()), predicted),
    ];
    let images = images.into_iter().filter_map(|(source, name)| {
        Some(Image {
            source: source?,
            name,
        })
    });
    Picture {
        images: images.collect(),
        caption: format!("{}: loss {}", sample.place, short_number(sample.loss)),
    }
}

fn of_generated(number: usize, picture: &str, classes: &[String]) -> Picture {
    Picture {
        images: vec![Image {
            source: picture.to_owned(),
            name: "generated",
        }],
        caption: match classes.get(number - 1) {
            Some(class) => format!("item {number}, for the class `{class}`"),
            None => format!("item {number}"),
        },
    }
}

fn of_epoch(drawn: &EpochPicture) -> Picture {
    Picture {
        images: vec![Image {
            source: drawn.picture.clone(),
            name: "generated",
        }],
        caption: format!("epoch {}", drawn.epoch),
    }
}

/// Maximum number of classes whose colors are listed.
const MAX_CLASSES: usize = 24;

/// The colors of classes in the masks of a section.
pub fn classes(report: &Report, id: &str) -> Vec<Key> {
    let found = report.evaluation.as_ref().map(|of| &of.evaluation.found);
    let Some(Evaluated::Segmentation {
        confusion, samples, ..
    }) = found.filter(|_| id == "samples")
    else {
        return Vec::new();
    };
    if samples.is_empty() {
        return Vec::new();
    }
    let classes = confusion.classes.iter().enumerate().take(MAX_CLASSES);
    let keys = classes.map(|(class, name)| {
        let [red, green, blue] = class_colour(class as i32);
        Key {
            series: class,
            mark: format!(
                "<i class=\"swatch\" style=\"background:rgb({red} {green} {blue})\"></i>"
            ),
            name: name.clone(),
        }
    });
    keys.collect()
}

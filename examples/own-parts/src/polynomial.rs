//! A learning rate schedule.

use burn_runner::parts::{Kind, Place, SchedulePart, Section};
use serde::{Deserialize, Serialize};

/// Falls to 0 as a power of the fraction of steps that are left.
pub struct Polynomial;

/// The keys of the schedule in an experiment file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    power: f64,
}

impl SchedulePart for Polynomial {
    const NAME: &'static str = "polynomial";
    const DOC: &'static str = "Falls to 0 as a power of the fraction of steps that are left.";
    type Settings = Settings;

    fn settings(section: &mut Section<'_>) -> Settings {
        Settings {
            power: section
                .field("power", Kind::positive(), "The power.")
                .or(1.0),
        }
    }

    fn factor(settings: &Settings, at: Place) -> f64 {
        let left = at.num_steps - at.step.min(at.num_steps);
        (left as f64 / at.num_steps as f64).powf(settings.power)
    }
}

//! `[[notify]]`: what is told of the end of an experiment, and of runs that fail. Not part of a run's identity.

use serde::Serialize;

use super::kind::Kind;
use super::section::{Section, choices};

/// A table of `[[notify]]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NotifySpec {
    /// What it is told of.
    pub on: Vec<Occasion>,
    /// A program with its arguments.
    pub command: Option<Vec<String>>,
    /// The environment variable with the address of a webhook. The address itself is often a secret, and experiment
    /// files are copied into results.
    pub url_variable: Option<String>,
}

choices! {
    /// What a notification is sent for.
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Occasion {
        Finished "finished" "The training has ended, and all of its runs are completed.",
        Failed "failed" "The training has ended, and not all of its runs are completed.",
        RunFailed "run_failed" "A run has failed, and is not tried again.",
        Diverged "diverged" "A run has failed since its numbers became infinite or NaN, and is not tried again.",
    }
}

impl NotifySpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let on = Kind::List {
            item: Box::new(Kind::of_choice::<Occasion>()),
            min_items: 1,
            unique: true,
        };
        let named: Vec<String> =
            s.field("on", on, "What it is sent for.")
                .or(["finished", "failed"].map(str::to_owned).to_vec());
        let named = named.iter();
        Self {
            on: named.filter_map(|name| super::section::by_name(name)).collect(),
            command: s
                .field(
                    "command",
                    Kind::list(Kind::Text, 1),
                    "A program with its arguments; it is started without a shell, and reads what happened as JSON from its standard input.",
                )
                .optional(),
            url_variable: s
                .field(
                    "url_variable",
                    Kind::Text,
                    "The environment variable that contains the address of a webhook, to which what happened is sent as JSON by POST.",
                )
                .optional(),
        }
    }
}

//! What can be wrong with a trial although each of its tables is valid on its own.
//!
//! [`RULES`] is the complete list. A rule is a pure function of a [`Point`]; it lists the keys that it reads, and is
//! skipped if one of them was already refused, so that each mistake is reported once.

mod adapters;
mod adversarial;
mod average;
mod balance;
mod chats;
mod data;
pub mod distill;
mod documents;
mod edges;
mod failure;
mod fit;
pub mod forecast;
mod groups;
mod hub;
mod hybrid;
mod losses;
mod masked;
pub mod measured;
mod mixing;
pub mod network;
mod notify;
mod padded;
mod padding;
mod portable;
mod predictions;
mod preset_sizes;
mod recipe;
pub mod recomputed;
mod rules;
mod schedule;
mod sequences;
mod split;
pub mod task;
pub mod trial;

use crate::data::DataPlan;
use crate::diagnostic::{Diagnostic, Severity, Span};
use crate::spec::ExperimentSpec;
use crate::spec::document::Table;
use crate::spec::section::Findings;
use network::Network;

/// One trial: the document with the values of the axes, and what is derived from it.
pub struct Point<'a> {
    /// The document's root.
    pub root: &'a Table,
    /// The decoded document.
    pub spec: &'a ExperimentSpec,
    /// The located data, unless it was refused.
    pub data: Option<&'a DataPlan>,
    /// The laid-out network, unless it was refused.
    pub network: Option<&'a Network>,
}

impl Point<'_> {
    /// Where to point for a dotted key: its value, or the nearest table above it that is set.
    pub fn span(&self, path: &str) -> Span {
        span(self.root, path)
    }
}

/// The place of a dotted key, or of the nearest table above it that is set.
pub fn span(root: &Table, path: &str) -> Span {
    let mut path = path;
    loop {
        if let Some(span) = root.span_at(path) {
            return span;
        }
        match path.rsplit_once('.') {
            Some((above, _)) => path = above,
            None => return Span::default(),
        }
    }
}

/// A check that may emit a diagnostic.
pub struct Rule {
    /// The keys and tables that must be valid for it.
    pub reads: &'static [&'static str],
    /// The check.
    pub check: fn(&Point<'_>) -> Option<Diagnostic>,
}

/// Every rule, in the order in which they run.
pub const RULES: &[Rule] = &[
    Rule {
        reads: &["data"],
        check: data::settings_fit,
    },
    Rule {
        reads: &["data", "model"],
        check: data::inputs_are_taken,
    },
    Rule {
        reads: &["data", "model", "loss", "task"],
        check: task::one_softmax,
    },
    Rule {
        reads: &["data", "model"],
        check: masked::later_tokens_are_seen,
    },
    Rule {
        reads: &["data"],
        check: chats::chats_have_a_column,
    },
    Rule {
        reads: &["data"],
        check: documents::documents_have_an_end,
    },
    Rule {
        reads: &["data", "model"],
        check: documents::documents_stay_apart,
    },
    Rule {
        reads: &["data", "model"],
        check: edges::values_of_edges_are_used,
    },
    Rule {
        reads: &["data", "model"],
        check: edges::order_of_ends_matters,
    },
    Rule {
        reads: &["data", "model"],
        check: sequences::positions_are_not_channels,
    },
    Rule {
        reads: &["data", "model"],
        check: padded::padding_is_left_out,
    },
    Rule {
        reads: &["data", "model"],
        check: padded::masks_find_padding,
    },
    Rule {
        reads: &["loss", "losses"],
        check: padding::terms_leave_out_too,
    },
    Rule {
        reads: &["data", "task", "strategy"],
        check: data::target_is_named,
    },
    Rule {
        reads: &["data", "model", "init"],
        check: hub::classes_are_those_of_the_folder,
    },
    Rule {
        reads: &["adapters", "model"],
        check: hub::new_heads_are_trained,
    },
    Rule {
        reads: &["data.split"],
        check: split::split_leaves_items,
    },
    Rule {
        reads: &["data"],
        check: split::one_test_split,
    },
    Rule {
        reads: &["data"],
        check: split::one_valid_split,
    },
    Rule {
        reads: &["data.split"],
        check: split::fold_is_there,
    },
    Rule {
        reads: &["data"],
        check: split::split_is_one_way,
    },
    Rule {
        reads: &["data"],
        check: split::splits_by_run_are_drawn,
    },
    Rule {
        reads: &["data"],
        check: split::folds_are_not_in_time,
    },
    Rule {
        reads: &["data"],
        check: split::texts_are_in_order,
    },
    Rule {
        reads: &["data", "task"],
        check: split::classes_are_learned,
    },
    Rule {
        reads: &["data"],
        check: data::augment_changes_pictures,
    },
    Rule {
        reads: &["data", "task", "loss", "losses", "train.batch_size"],
        check: mixing::classes_can_be_mixed,
    },
    Rule {
        reads: &["data", "task", "losses"],
        check: mixing::targets_move_with_images,
    },
    Rule {
        reads: &["data.augment"],
        check: mixing::mixing_is_one_way,
    },
    Rule {
        reads: &["data"],
        check: mixing::colors_are_there,
    },
    Rule {
        reads: &["data"],
        check: mixing::noise_has_labels,
    },
    Rule {
        reads: &["data", "train.batch_size"],
        check: rules::batch_fits_split,
    },
    Rule {
        reads: &["train.batch_size", "train.micro_batch_size"],
        check: recipe::micro_batch_fits_batch,
    },
    Rule {
        reads: &["model", "train.batch_size", "train.micro_batch_size"],
        check: recipe::pieces_have_statistics_of_their_own,
    },
    Rule {
        reads: &[
            "data",
            "model",
            "train.batch_size",
            "train.micro_batch_size",
        ],
        check: recipe::batches_have_a_variance,
    },
    Rule {
        reads: &["data", "train.sampler"],
        check: balance::sampler_has_classes,
    },
    Rule {
        reads: &["train.sampler", "loss"],
        check: balance::classes_are_balanced_once,
    },
    Rule {
        reads: &["backend"],
        check: rules::kernels_have_their_name,
    },
    Rule {
        reads: &["backend"],
        check: portable::place_is_portable,
    },
    Rule {
        reads: &["data", "model", "backend"],
        check: portable::layers_are_portable,
    },
    Rule {
        reads: &["loss", "losses", "backend"],
        check: portable::loss_is_portable,
    },
    Rule {
        reads: &["task", "losses", "backend"],
        check: portable::metrics_are_portable,
    },
    Rule {
        reads: &["optimizer", "scheduler", "strategy", "backend"],
        check: portable::updates_are_portable,
    },
    Rule {
        reads: &["train.epochs", "train.early_stopping"],
        check: recipe::patience_can_end,
    },
    Rule {
        reads: &[
            "train.ema",
            "strategy",
            "train.early_stopping",
            "scheduler",
            "objective",
        ],
        check: average::averages_are_made,
    },
    Rule {
        reads: &["data", "train", "strategy"],
        check: average::averages_start,
    },
    Rule {
        reads: &["optimizer", "backend.precision"],
        check: recipe::adafactor_is_resumable,
    },
    Rule {
        reads: &["train.ema", "strategy", "backend.precision"],
        check: average::averages_are_precise,
    },
    Rule {
        reads: &["data", "model", "adapters", "train", "strategy"],
        check: recomputed::blocks_can_be_recomputed,
    },
    Rule {
        reads: &["data", "train", "strategy"],
        check: hybrid::something_is_predicted,
    },
    Rule {
        reads: &["data", "train", "strategy"],
        check: hybrid::probe_fits_split,
    },
    Rule {
        reads: &["train.ema", "strategy"],
        check: hybrid::no_average_of_predictions,
    },
    Rule {
        reads: &["data", "task", "strategy"],
        check: distill::temperature_softens,
    },
    Rule {
        reads: &["data", "task", "loss", "strategy"],
        check: distill::outputs_are_comparable,
    },
    Rule {
        reads: &["data", "model", "strategy"],
        check: adversarial::noise_has_a_use,
    },
    Rule {
        reads: &["data", "losses", "adapters", "predictions", "strategy"],
        check: adversarial::nothing_else_is_asked,
    },
    Rule {
        reads: &["data", "model", "loss", "backend.precision", "strategy"],
        check: adversarial::penalty_can_be_computed,
    },
    Rule {
        reads: &["scheduler"],
        check: schedule::warmup_is_one,
    },
    Rule {
        reads: &["scheduler"],
        check: schedule::stages_have_lengths,
    },
    Rule {
        reads: &["data", "train", "scheduler"],
        check: schedule::warmup_ends,
    },
    Rule {
        reads: &["data", "train", "scheduler"],
        check: schedule::stages_are_reached,
    },
    Rule {
        reads: &["data", "train", "scheduler"],
        check: schedule::epoch_units_begin_with_epochs,
    },
    Rule {
        reads: &["train.epochs", "scheduler"],
        check: schedule::plateau_can_come,
    },
    Rule {
        reads: &["scheduler"],
        check: schedule::milestones_are_in_order,
    },
    Rule {
        reads: &["data", "train", "scheduler"],
        check: schedule::schedule_changes,
    },
    Rule {
        reads: &["data", "train", "scheduler"],
        check: schedule::own_factors_are_rates,
    },
    Rule {
        reads: &["optimizer"],
        check: recipe::momentum_is_there,
    },
    Rule {
        reads: &["optimizer"],
        check: recipe::clip_is_one,
    },
    Rule {
        reads: &["optimizer"],
        check: recipe::numbers_fit_f32,
    },
    Rule {
        reads: &["optimizer", "backend.precision"],
        check: recipe::epsilon_is_not_zero,
    },
    Rule {
        reads: &["data", "model", "adapters"],
        check: adapters::weights_are_parameters,
    },
    Rule {
        reads: &["data", "model", "adapters"],
        check: adapters::weights_can_be_adapted,
    },
    Rule {
        reads: &["data", "model", "adapters"],
        check: adapters::weights_are_adapted_once,
    },
    Rule {
        reads: &["data", "model", "adapters"],
        check: adapters::adapted_weights_are_not_tied,
    },
    Rule {
        reads: &["data", "model", "adapters"],
        check: adapters::trained_parameters_are_there,
    },
    Rule {
        reads: &["data", "model", "adapters"],
        check: adapters::rank_is_small,
    },
    Rule {
        reads: &["adapters"],
        check: adapters::bases_agree,
    },
    Rule {
        reads: &["adapters", "backend"],
        check: adapters::base_saves_memory,
    },
    Rule {
        reads: &["adapters", "strategy"],
        check: adapters::updates_are_computed,
    },
    Rule {
        reads: &["data", "model", "adapters", "optimizer"],
        check: adapters::groups_name_trained_parameters,
    },
    Rule {
        reads: &["data", "model", "optimizer", "adapters"],
        check: groups::patterns_match,
    },
    Rule {
        reads: &["optimizer"],
        check: groups::groups_change_something,
    },
    Rule {
        reads: &["data", "model", "optimizer"],
        check: groups::groups_are_not_hidden,
    },
    Rule {
        reads: &["data", "model", "optimizer"],
        check: groups::something_is_trained,
    },
    Rule {
        reads: &["notify"],
        check: notify::notifications_have_a_way,
    },
    Rule {
        reads: &["notify"],
        check: notify::notifications_come_once,
    },
    Rule {
        reads: &["on_failure.not_finite"],
        check: failure::not_finite_is_retried_differently,
    },
    Rule {
        reads: &["on_failure"],
        check: failure::settings_of_retries_are_used,
    },
    Rule {
        reads: &["on_failure.timeout", "launch"],
        check: failure::timeouts_are_not_retried,
    },
    Rule {
        reads: &["on_failure.timeout", "limits.run", "launch"],
        check: failure::timeout_has_a_limit,
    },
    Rule {
        reads: &["data", "predictions"],
        check: predictions::split_is_there,
    },
    Rule {
        reads: &["predictions"],
        check: predictions::format_is_built,
    },
    Rule {
        reads: &["limits"],
        check: failure::limit_of_a_run_can_be_passed,
    },
    Rule {
        reads: &["backend.device"],
        check: rules::host_is_one_device,
    },
    Rule {
        reads: &["memory"],
        check: rules::on_exceed_is_one_way,
    },
    Rule {
        reads: &["data", "model", "backend", "memory", "train", "optimizer"],
        check: rules::memory_suffices,
    },
];

/// Runs every rule over a point, and reports what was noticed in its data.
pub fn check(point: &Point<'_>, findings: &mut Findings) {
    for warning in point
        .data
        .into_iter()
        .flat_map(|data| &data.noticed.warnings)
    {
        let mut diagnostic = warning.to_diagnostic().at(point.span(&warning.key));
        diagnostic.severity = Severity::Warning;
        findings.diagnostics.push(diagnostic);
    }
    for rule in RULES {
        if rule.reads.iter().any(|path| findings.is_poisoned(path)) {
            continue;
        }
        if let Some(diagnostic) = (rule.check)(point) {
            findings.diagnostics.push(diagnostic);
        }
    }
}

pub use groups::{group_of, matches};

//! Changes to a run that does not fit into memory, and the resulting run.

use serde::{Deserialize, Serialize};

use super::RunPlan;
use super::inventory::Inventory;
use super::room::Room;
use crate::check::recomputed;
use crate::spec::adjustment::{Adjustment, Change};
use crate::spec::backend::{DeviceName, Precision};
use crate::spec::memory::OnExceed;
use crate::spec::section::Choice;
use crate::spec::train::Recomputed;

/// Remedies for a run that does not fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Relief {
    /// The remedies, in order.
    pub rungs: Vec<OnExceed>,
    /// The devices on which it may continue, the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceName>,
}

impl Relief {
    /// For a run on `device`. The devices are listed only if they may be needed.
    pub fn new<'a>(
        rungs: &[OnExceed],
        (device, precision): (DeviceName, Precision),
        inventory: impl FnOnce() -> &'a Inventory,
    ) -> Self {
        let devices = if rungs.contains(&OnExceed::NextDevice) {
            after(device, precision, inventory())
        } else {
            Vec::new()
        };
        Self {
            rungs: rungs.to_vec(),
            devices,
        }
    }

    /// Whether there are no remedies.
    pub fn is_empty(&self) -> bool {
        self.rungs.is_empty()
    }
}

/// Half as many items, as long as there are at least two.
pub fn halved(items: usize) -> Option<usize> {
    (items > 1).then(|| items.div_ceil(2))
}

/// The devices other than `device`, only with other hardware: the purpose is more memory.
fn after(device: DeviceName, precision: Precision, inventory: &Inventory) -> Vec<DeviceName> {
    let card = |name: DeviceName| {
        let found = inventory.look_up(name, precision).ok();
        found.map(|found| found.card.as_str())
    };
    let mut cards = vec![card(device)];
    let mut devices: Vec<DeviceName> = inventory.preferred(precision).collect();
    devices.retain(|other| {
        let is_new = *other != device && !cards.contains(&card(*other));
        cards.push(card(*other));
        is_new
    });
    devices
}

impl RunPlan {
    /// The run with its adjustments applied.
    pub fn adjusted(&self, adjustments: &[Adjustment]) -> Self {
        let mut run = self.clone();
        if adjustments.is_empty() {
            return run;
        }
        for adjustment in adjustments {
            match adjustment.change {
                // The schedule is evaluated with the adjustments, since they apply from their step on.
                Change::LearningRateFactor(_) => {}
                // Before their step, others apply: see `PieceSizes`.
                Change::MicroBatchSize(size) => run.train.micro_batch_size = size,
                Change::GradientCheckpointing(is_on) => {
                    run.train.gradient_checkpointing = is_on.into();
                }
                Change::Device(device) => run.device = device,
            }
        }
        run.with_forecast()
    }

    /// The run with another kind of gradient checkpointing, if its network and strategy allow it.
    pub fn recomputing(&self, recomputed: Recomputed) -> Option<Self> {
        let is_possible = recomputed != Recomputed::Blocks
            || recomputed::obstacle(&self.strategy, &self.network).is_none();
        is_possible.then(|| {
            let mut run = self.clone();
            run.train.gradient_checkpointing = recomputed;
            run.with_forecast()
        })
    }

    /// What the user can do about a run that does not fit and has no remedies left, in addition to `more_room`.
    pub fn without_relief(&self, more_room: &str) -> String {
        let train = &self.train;
        let rungs = &self.on_exceed.rungs;
        let mut ways = vec![more_room];
        if train.micro_batch_size > 1 {
            ways.push("set a smaller `train.micro_batch_size`");
        }
        if train.gradient_checkpointing.is_nothing() {
            ways.push("set `train.gradient_checkpointing`");
        }
        ways.push("choose a smaller model");
        if rungs.is_empty() {
            ways.push("let `memory.on_exceed` change the run");
        }
        let last = ways.pop().unwrap_or_default();
        let ways = format!("{}, or {last}", ways.join(", "));
        let has_no_device =
            rungs.contains(&OnExceed::NextDevice) && self.on_exceed.devices.is_empty();
        let tried = if rungs.is_empty() {
            ""
        } else {
            "no remedy in `memory.on_exceed` reduces it further: "
        };
        if has_no_device {
            format!(
                "this machine has no other device to continue on in {}; {tried}{ways}",
                self.precision.name()
            )
        } else {
            format!("{tried}{ways}")
        }
    }

    /// The run with as many of its remedies as its count needs to fit, or all of them.
    pub fn relieved(&self, room: impl Fn(&RunPlan) -> Option<Room>) -> Self {
        let mut run = self.clone();
        while let (Some(room), Some(change)) = (room(&run), run.relief()) {
            if run.forecast.total() <= room.bytes {
                break;
            }
            run = run.adjusted(&[Adjustment {
                from_step: 0,
                change,
            }]);
        }
        run
    }

    /// Whether a change lowers the run's memory count. Gradients of pieces are accumulated in a second copy, which may
    /// need more than smaller pieces save.
    fn holds_less(&self, change: Change) -> bool {
        let changed = self.adjusted(&[Adjustment {
            from_step: 0,
            change,
        }]);
        changed.forecast.without_kept() < self.forecast.without_kept()
    }

    /// The next change to a run that does not fit; none if no remedy helps.
    pub fn relief(&self) -> Option<Change> {
        for rung in &self.on_exceed.rungs {
            let train = &self.train;
            let change = match rung {
                OnExceed::Refuse => return None,
                OnExceed::Accumulate => {
                    let half = halved(train.micro_batch_size);
                    let half = half.filter(|_| self.holds_less(Change::MicroBatchSize(1)));
                    half.map(Change::MicroBatchSize)
                }
                OnExceed::Checkpoint => {
                    let change = Change::GradientCheckpointing(true);
                    let is_left = train.gradient_checkpointing.is_nothing();
                    let is_left = is_left && self.holds_less(change);
                    is_left.then_some(change)
                }
                OnExceed::NextDevice => {
                    let devices = &self.on_exceed.devices;
                    // If it is not in the list, it is the original device.
                    let at = devices.iter().position(|device| *device == self.device);
                    let next = devices.get(at.map_or(0, |at| at + 1));
                    next.map(|device| Change::Device(*device))
                }
            };
            if change.is_some() {
                return change;
            }
        }
        None
    }
}

//! What can be changed about a run that does not fit into memory, and the run as it is then.

use serde::{Deserialize, Serialize};

use super::RunPlan;
use super::inventory::Inventory;
use super::room::Room;
use crate::spec::adjustment::{Adjustment, Change};
use crate::spec::backend::{DeviceName, Precision};
use crate::spec::memory::OnExceed;
use crate::spec::section::Choice;

/// What is done about a run that does not fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Relief {
    /// What is tried, in order.
    pub rungs: Vec<OnExceed>,
    /// The devices that it may go on on, the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceName>,
}

impl Relief {
    /// That of a run on `device`. The devices are looked for only when they may be needed.
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

    /// Whether nothing is done.
    pub fn is_empty(&self) -> bool {
        self.rungs.is_empty()
    }
}

/// Half as many items, as long as there are two.
pub fn halved(items: usize) -> Option<usize> {
    (items > 1).then(|| items.div_ceil(2))
}

/// The devices besides `device`, those of other hardware alone: more memory is what is looked for.
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
    /// The run as its adjustments leave it.
    pub fn adjusted(&self, adjustments: &[Adjustment]) -> Self {
        let mut run = self.clone();
        if adjustments.is_empty() {
            return run;
        }
        for adjustment in adjustments {
            match adjustment.change {
                // The schedule is asked with the adjustments, since they hold from their step on.
                Change::LearningRateFactor(_) => {}
                // Before their step others hold: see `PieceSizes`.
                Change::MicroBatchSize(size) => run.train.micro_batch_size = size,
                Change::GradientCheckpointing(is_on) => run.train.gradient_checkpointing = is_on,
                Change::Device(device) => run.device = device,
            }
        }
        run.with_forecast()
    }

    /// What the user can do about a run that does not fit as it is, besides what `more_room` says: with nothing left
    /// of its ladder.
    pub fn without_relief(&self, more_room: &str) -> String {
        let train = &self.train;
        let rungs = &self.on_exceed.rungs;
        let mut ways = vec![more_room];
        if train.micro_batch_size > 1 {
            ways.push("set a smaller `train.micro_batch_size`");
        }
        if !train.gradient_checkpointing {
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
            "all that `memory.on_exceed` names was tried: "
        };
        if has_no_device {
            format!(
                "this machine has no other device to go on on in {}; {tried}{ways}",
                self.precision.name()
            )
        } else {
            format!("{tried}{ways}")
        }
    }

    /// The run with as much of its ladder as it takes for its count to fit, or all of it.
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

    /// Whether a change makes the run hold less by its count. Gradients of pieces are added up in a second copy, which
    /// may take more than smaller pieces save.
    fn holds_less(&self, change: Change) -> bool {
        let changed = self.adjusted(&[Adjustment {
            from_step: 0,
            change,
        }]);
        changed.forecast.without_kept() < self.forecast.without_kept()
    }

    /// What is changed next about a run that does not fit as it is; none when nothing is left that helps.
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
                    let is_left = !train.gradient_checkpointing && self.holds_less(change);
                    is_left.then_some(change)
                }
                OnExceed::NextDevice => {
                    let devices = &self.on_exceed.devices;
                    // Where it is not in the list, it is where it began.
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

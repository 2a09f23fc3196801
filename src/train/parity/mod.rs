//! Two devices side by side, in this process: the trainings of a run in lockstep, and small networks of each type of
//! layer.
//!
//! In lockstep each device trains its own copy of one network on the same batches, and so do copies on the reference
//! device with different rounding (`noise`): their distance from the reference is the noise floor. In addition, each
//! layer is computed in isolation with the reference's inputs in that step, so that a wrong layer can be told from one
//! that only suffers from it.

mod examples;
mod host;
mod itself;
mod lane;
mod noise;
mod steps;
mod wrong;

use burn::tensor::Device;

pub use examples::try_examples;
pub use steps::{determinate, train_in_lock_step};
pub use wrong::WrongLayer;

use self::lane::Manner;
use self::noise::Noise;
use super::device;
use runner_core::diagnostic::Reason;
use runner_core::parity::{NUM_NOISES, Said};
use runner_core::spec::backend::{DeviceName, Precision};

/// Receives the messages.
pub type Say<'a> = &'a mut dyn FnMut(Said);

/// The two compared devices.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The reference.
    pub reference: DeviceName,
    /// The other.
    pub device: DeviceName,
    /// Of both.
    pub precision: Precision,
    /// A mistake of the other device, for tests.
    pub wrong: Option<WrongLayer>,
}

impl Pair {
    /// Opens both. The error describes a device that cannot be opened.
    fn open(&self, say: Say<'_>) -> Option<[Device; 2]> {
        let mut open = |name| {
            let opened = device::open(name, self.precision);
            opened
                .map_err(|Reason(reason)| say(Said::Refused { reason }))
                .ok()
        };
        let devices = [open(self.reference)?, open(self.device)?];
        say(Said::Opened {
            reference: device::describe(self.reference.backend, &devices[0]),
            device: device::describe(self.device.backend, &devices[1]),
        });
        Some(devices)
    }

    /// The computation of the other device.
    fn manner(&self) -> Manner {
        match &self.wrong {
            Some(wrong) => Manner::Wrong(wrong.clone()),
            None => Manner::Plain,
        }
    }

    /// The reference with different rounding, each time in another way.
    fn noises(&self) -> impl Iterator<Item = Manner> + use<> {
        let precision = self.precision;
        (0..NUM_NOISES).map(move |number| Manner::Noisy(Box::new(Noise::new(number, precision))))
    }
}

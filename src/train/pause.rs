//! The end of a training that a search has decided on.

use std::fmt;
use std::str::FromStr;

use runner_core::event::Outcome;
use runner_core::spec::search::PruneRule;
use runner_core::spec::section::{Choice, by_name};

/// An epoch after which a training ends, and the rule of the search that it is part of, as `EPOCH:RULE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The last epoch.
    pub epoch: usize,
    /// The rule.
    pub rule: PruneRule,
}

/// The text is not of this form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPause;

impl Pause {
    /// The outcome of a training that ends here.
    pub fn outcome(self) -> Outcome {
        Outcome::Pruned {
            epoch: self.epoch,
            rule: self.rule,
        }
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.rule.name())
    }
}

impl FromStr for Pause {
    type Err = NoPause;

    fn from_str(text: &str) -> Result<Self, NoPause> {
        let (epoch, rule) = text.split_once(':').ok_or(NoPause)?;
        Ok(Self {
            epoch: epoch
                .parse()
                .ok()
                .filter(|epoch| *epoch > 0)
                .ok_or(NoPause)?,
            rule: by_name(rule).ok_or(NoPause)?,
        })
    }
}

impl fmt::Display for NoPause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it has the form `3:asha`")
    }
}

impl std::error::Error for NoPause {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_is_written() {
        for (_, name, _) in PruneRule::ALL {
            let text = format!("7:{name}");
            assert_eq!(text.parse::<Pause>().unwrap().to_string(), text);
        }
        for wrong in ["7", "0:asha", "7:other", ":asha", "-1:median"] {
            assert_eq!(wrong.parse::<Pause>(), Err(NoPause));
        }
    }
}

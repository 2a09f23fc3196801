//! `runner prove`: which of the guarantees hold for an experiment file on this machine.

use super::output::Output;
use super::tell::Teller;
use super::{FAILED, Logging, OK, ProveArgs};
use crate::ops::{self, Prove};
use runner_report::console::Mode;

/// Verifies the guarantees on one run of an experiment file.
pub fn prove(args: &ProveArgs, logging: &Logging, output: &mut Output) -> u8 {
    let options = Prove {
        experiment: args.spec.experiment().logging(logging),
        trial: args.trial.clone(),
    };
    let teller = Teller::new(Mode::Normal);
    let proof = match ops::prove(&options, &|progress| teller.tell(progress)) {
        Ok(proof) => proof,
        Err(error) => return output.fail(&error),
    };
    if args.json {
        output.print(&serde_json::to_string(&proof.findings).unwrap_or_default());
    } else {
        for finding in &proof.findings {
            let word = if finding.holds { "holds " } else { "BROKEN" };
            output.print(&format!(
                "{word}  {:<44}  {}",
                finding.guarantee, finding.detail
            ));
        }
    }
    if proof.holds() { OK } else { FAILED }
}

//! What the folder of a run contains of its network and its optimizer, as bytes.

use burn::module::Module;
use burn::tensor::Device;
use burn_pack::{Bytes, Reader};

use super::{Finished, Trainer};
use crate::lora;
use crate::network::Network;
use crate::saved::Saved;
use runner_core::record::Digests;

impl Trainer {
    /// The digests of the optimizer's state.
    ///
    /// # Errors
    /// Burn's, if its record cannot be written.
    pub fn optimizer_digests(&self) -> Result<Digests, String> {
        let bytes = self.optimizer.to_record().into_bytes();
        let bytes = bytes.map_err(|e| e.to_string())?;
        let reader = Reader::from_bytes(Bytes::from_bytes_vec(bytes.to_vec()));
        let saved = reader.and_then(Saved::read).map_err(|e| e.to_string())?;
        Ok(Digests {
            step: self.step(),
            parameters: saved.optimizer_digests(&self.paths),
        })
    }

    /// The files of weights that a run saves, by name: the initial ones, which are drawn again, those after the last
    /// update with averages of them, and those of the best epoch.
    ///
    /// # Errors
    /// Burn's, if its records cannot be written.
    pub fn weight_files(
        &self,
        finished: &Finished,
        device: &Device,
    ) -> Result<Vec<(String, Vec<u8>)>, String> {
        let plan = &self.plan;
        let initial = Network::drawn(plan, device).into_record();
        let mut records = vec![("initial", initial)];
        for (name, network) in &finished.weights {
            records.push((name, lora::record(plan, network.clone())));
        }
        records.push(("best", lora::record(plan, finished.best.clone())));
        let written = records.into_iter().map(|(name, record)| {
            let bytes = record.into_bytes().map_err(|e| e.to_string())?;
            Ok((name.to_owned(), bytes.to_vec()))
        });
        written.collect()
    }
}

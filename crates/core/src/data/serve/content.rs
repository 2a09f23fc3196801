//! What the items of a split consist of, as one digest.

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::Split;
use crate::data::hex;
use crate::data::records::ColumnKind;

impl Split {
    /// sha256 over the stored source of the items, in order: of chunks on all cores, and of their sums.
    pub fn digest(&self) -> String {
        const CHUNK: usize = 1024;
        let records = &self.set.records;
        let texts: Vec<usize> = (0..records.columns().len())
            .filter(|at| records.columns()[*at].kind == ColumnKind::Text)
            .collect();
        let of_rows = |rows: &[u32]| {
            let mut hasher = Sha256::new();
            for row in rows {
                let row = *row as usize;
                if texts.is_empty() {
                    hasher.update(records.record(row..row + 1));
                    continue;
                }
                for (at, column) in records.columns().iter().enumerate() {
                    match column.kind {
                        // The position of a text does not matter.
                        ColumnKind::Text => {
                            let text = records.text(row, at).unwrap_or("");
                            hasher.update((text.len() as u64).to_le_bytes());
                            hasher.update(text);
                        }
                        _ => hasher.update(records.bytes(row, at)),
                    }
                }
            }
            hasher.finalize()
        };
        let chunks: Vec<_> = self.rows.par_chunks(CHUNK).map(of_rows).collect();
        let mut hasher = Sha256::new();
        chunks.iter().for_each(|chunk| hasher.update(chunk));
        self.tokens.add_to(&mut hasher);
        for start in self.starts.iter().flat_map(|starts| starts.iter()) {
            hasher.update(start.to_le_bytes());
        }
        if let Some(graph) = &self.set.graph {
            // Messages come from all nodes.
            hasher.update(graph.edges.digest());
            let nodes = self.set.inputs();
            hasher.update(nodes.record(0..nodes.len()));
        }
        if let Some(pairs) = &self.set.pairs {
            pairs.digest(&self.rows, &mut hasher);
        }
        hex(&hasher.finalize())
    }
}

//! A document and its trials as trees and specs, with references resolved.

use std::path::Path;

use super::sweep::{self, Account};
use crate::diagnostic::{Diagnostic, Diagnostics, nearest};
use crate::spec::document::{Document, Table, Value};
use crate::spec::hub;
use crate::spec::reference::{References, drop_unused_values};
use crate::spec::section::Findings;
use crate::spec::sweep::SweepSpec;
use crate::spec::{ExperimentSpec, SWEEP_TABLES};

/// The spec of every trial with the trial's id, or what is wrong with the document's model or sweep. Rules and shapes
/// are not checked.
pub fn specs(document: &Document) -> Result<Vec<(String, ExperimentSpec)>, Diagnostics> {
    let references = References::new(document);
    let mut specs = Vec::new();
    for (id, root) in trials(document)? {
        let (_, spec, findings) = read(&references, root, &[]);
        if findings.is_poisoned("model") {
            return Err(findings.diagnostics);
        }
        specs.push((id, spec));
    }
    Ok(specs)
}

/// The tree of every trial with the trial's id, with unresolved references, or what is wrong with the sweep.
pub fn trials(document: &Document) -> Result<Vec<(String, Table)>, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let expansion = sweep::expand(document, 1, &mut diagnostics).ok_or(diagnostics)?;
    let trials = expansion.points.iter();
    Ok(trials
        .map(|point| (point.id.clone(), expansion.tree(point)))
        .collect())
}

/// A document, or one of its trials, prepared for [`crate::spec::render`]: with the keys that the sweep sets.
/// References to those stay unresolved if the tree is not that of a trial. With a `folder`, relative paths are put
/// below it.
pub fn put_together(
    document: &Document,
    trial: Option<&str>,
    folder: Option<&Path>,
) -> Result<(Table, Vec<String>), Diagnostics> {
    let references = References::new(document);
    let axes = SweepSpec::read(&document.root, &mut Findings::default()).keys();
    let mut resolved = match trial {
        None => references.resolve_as_text(document.root.clone(), &axes),
        Some(wanted) => {
            let trials = trials(document)?;
            let ids = || trials.iter().map(|(id, _)| id.as_str());
            let Some((_, root)) = trials.iter().find(|(id, _)| id == wanted) else {
                let message = format!("there is no trial `{wanted}`");
                let diagnostic = Diagnostic::error("usage", message);
                let diagnostic = match nearest(wanted, ids()) {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => {
                        let first = ids().next().unwrap_or_default().to_owned();
                        diagnostic.help(format!(
                            "trials have names such as `{first}`; `runner plan` shows the runs, named after trial and seed"
                        ))
                    }
                };
                return Err(Diagnostics(vec![diagnostic]));
            };
            let mut root = root.clone();
            root.entries
                .retain(|entry| !SWEEP_TABLES.contains(&entry.key.as_str()));
            // One trial has no other to be compared with.
            for entry in root
                .entries
                .iter_mut()
                .filter(|entry| entry.key == "objective")
            {
                if let Value::Table(objective) = &mut entry.node.value {
                    objective.entries.retain(|entry| entry.key != "baseline");
                }
            }
            references.resolve_as_text(root, &[])
        }
    };
    if !resolved.diagnostics.is_empty() {
        return Err(Diagnostics(resolved.diagnostics));
    }
    drop_unused_values(&mut resolved.root);
    if let Some(folder) = folder {
        references.move_to(&mut resolved.root, folder);
    }
    Ok((resolved.root, axes))
}

/// Decodes a tree with its references resolved. Nothing is said about the `open` keys, which the tree of a trial has none
/// of.
pub(super) fn read(
    references: &References<'_>,
    root: Table,
    open: &[String],
) -> (Table, ExperimentSpec, Findings) {
    let mut resolved = references.resolve(root, open);
    let mut findings = resolved.findings();
    findings.poisoned.extend_from_slice(open);
    let names = hub::open(&mut resolved.root, references.folder(), &mut findings);
    let mut spec = ExperimentSpec::decode(&resolved.root, &mut findings);
    if let Some(init) = &mut spec.init {
        init.hub = names;
    }
    resolved.report(&mut findings);
    (resolved.root, spec, findings)
}

/// Decodes the document itself, leaving references to swept keys unresolved.
pub(super) fn read_as_written(
    document: &Document,
    references: &References<'_>,
) -> (Table, ExperimentSpec, Findings) {
    let sweep = SweepSpec::read(&document.root, &mut Findings::default());
    read(references, document.root.clone(), &sweep.keys())
}

/// What happened to the points of a document's sweep; none if the sweep is invalid.
pub fn account(document: &Document) -> Option<Account> {
    let written = ExperimentSpec::decode(&document.root, &mut Findings::default());
    let num_seeds = written.experiment.seeds.len();
    let mut unused = Diagnostics::default();
    let expansion = sweep::expand(document, num_seeds, &mut unused)?;
    Some(expansion.account)
}

//! Memory of runs compared with their forecasts, as a table.

use runner_core::event::PoolUsage;
use runner_core::record::MemoryUse;
use runner_core::show::show_bytes;

/// The names of a row's columns. GPU memory in use is a column if it is known for any row.
pub fn names(of_cards: bool) -> Vec<&'static str> {
    let card = of_cards.then_some("card");
    ["forecast", "calibrated", "process", "in use", "reserved"]
        .into_iter()
        .chain(card)
        .chain(["error"])
        .collect()
}

/// A row of the report's table.
pub fn row(memory: &MemoryUse, of_cards: bool) -> Vec<String> {
    let pool = |bytes: fn(&PoolUsage) -> u64| {
        let pool = memory.measured.pool.as_ref();
        pool.map_or("-".into(), |pool| show_bytes(bytes(pool)))
    };
    let shown = |bytes: Option<u64>| bytes.map_or("-".into(), show_bytes);
    let mut row = vec![
        show_bytes(memory.forecast_bytes),
        shown(memory.calibrated_bytes),
        show_bytes(memory.measured.process_bytes),
        pool(|pool| pool.in_use_bytes),
        pool(|pool| pool.reserved_bytes),
    ];
    if of_cards {
        row.push(shown(memory.measured.card_bytes));
    }
    row.push(format!("{:+.1} %", 100.0 * memory.error()));
    row
}

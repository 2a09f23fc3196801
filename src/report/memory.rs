//! What runs held of memory, beside what was forecast, as a table.

use crate::event::PoolUsage;
use crate::record::MemoryUse;
use crate::spec::kind::show_bytes;

/// The names of a row's columns.
pub const HEAD: [&str; 6] = [
    "forecast",
    "calibrated",
    "process",
    "in use",
    "reserved",
    "error",
];

/// A row of the report's table.
pub fn row(memory: &MemoryUse) -> Vec<String> {
    let pool = |bytes: fn(&PoolUsage) -> u64| {
        let pool = memory.measured.pool.as_ref();
        pool.map_or("-".into(), |pool| show_bytes(bytes(pool)))
    };
    vec![
        show_bytes(memory.forecast_bytes),
        memory.calibrated_bytes.map_or("-".into(), show_bytes),
        show_bytes(memory.measured.process_bytes),
        pool(|pool| pool.in_use_bytes),
        pool(|pool| pool.reserved_bytes),
        format!("{:+.1} %", 100.0 * memory.error()),
    ]
}

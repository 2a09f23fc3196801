//! Numbers of things in words.

/// `1 run`, `2 runs`.
pub fn counted(num: usize, what: &str) -> String {
    match num {
        1 => format!("1 {what}"),
        _ => format!("{num} {what}s"),
    }
}

/// A number with a comma between thousands: `12,345,678`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

//! Signals that end a command.

use crate::dispatch::Cancel;
#[cfg(unix)]
use crate::dispatch::{Reason, Urgency};

/// The first Ctrl-C or SIGTERM makes runs save a checkpoint, the second kills them. A closed terminal (SIGHUP) makes
/// them save one too, however often it is sent: shells and systemd send it together with other signals. It stays
/// ignored under `nohup`.
#[cfg(unix)]
pub fn listen_for_signals(cancel: Cancel) {
    use super::leash::is_ignored;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    let wanted = [SIGINT, SIGTERM].into_iter().chain(hangup);
    let Ok(mut signals) = Signals::new(wanted) else {
        return;
    };
    std::thread::spawn(move || {
        let mut is_hung_up = false;
        for signal in signals.forever() {
            let urgency = match cancel.urgency() {
                Urgency::None => Urgency::Graceful,
                other if signal == SIGHUP => other,
                // A signal that accompanies the hangup is not a second request.
                Urgency::Graceful if is_hung_up => Urgency::Graceful,
                _ => Urgency::AtOnce,
            };
            is_hung_up = signal == SIGHUP;
            cancel.cancel(urgency, Reason::User);
        }
    });
}

/// Elsewhere Ctrl-C ends this program, and the workers save a checkpoint when their leash is closed.
#[cfg(not(unix))]
pub fn listen_for_signals(_: Cancel) {}

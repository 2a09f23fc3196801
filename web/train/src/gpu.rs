//! The browser's GPU.

use std::cell::RefCell;

use burn::tensor::Device;
use wasm_bindgen::prelude::*;

use crate::session::Named;

thread_local! {
    static OPENED: RefCell<Option<Named>> = const { RefCell::new(None) };
}

/// Opens the browser's default GPU for the trainings of this module. `name` is what records call it.
///
/// # Errors
/// Why it cannot be opened.
#[wasm_bindgen]
pub async fn open_gpu(name: String) -> Result<(), String> {
    if device().is_none() {
        let opened = Device::wgpu_options().init_async().await;
        let device = opened.map_err(|e| e.to_string())?;
        OPENED.replace(Some(Named { device, name }));
    }
    Ok(())
}

/// The GPU, once it is open.
pub fn device() -> Option<Named> {
    OPENED.with_borrow(Clone::clone)
}

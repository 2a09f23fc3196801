//! The experiment file of an imported network.

use runner_exchange::onnx::import::Imported;

/// An experiment on the example, in which users can set their own data.
pub fn text(stem: &str, imported: &Imported) -> String {
    let network = &imported.network;
    let shape = network
        .layers
        .last()
        .map_or(&network.items.dims, |last| &last.shape);
    let columns = match network.items.vocabulary {
        Some(_) => "columns = [{ name = \"input\", type = \"category\" }]\n",
        None => "",
    };
    let init = if imported.tensors.is_empty() {
        String::new()
    } else {
        format!("[init]\nfrom = {:?}\n\n", format!("{stem}.safetensors"))
    };
    format!(
        "# The network of {stem}.onnx: items of shape {}, outputs of shape {shape:?}.\n\
         # Its data is an example of some inputs with the network's outputs: replace `[data]` with your own.\n\n\
         [data]\n\
         type = \"safetensors\"\n\
         path = {:?}\n\
         features = [\"input\"]\n\
         target = \"output\"\n\
         scale = \"none\"\n\
         {columns}\
         split = {{ valid = 0.25, stratified = false }}\n\n\
         {init}\
         [model]\n\
         layers = [\n{}]\n\n\
         [optimizer]\n\
         type = \"adam\"\n\
         learning_rate = 1e-4\n\n\
         [train]\n\
         epochs = 1\n\
         batch_size = 3\n",
        network.items.show(),
        format!("{stem}.example.safetensors"),
        imported
            .lines
            .iter()
            .map(|line| format!("    {line},\n"))
            .collect::<String>(),
    )
}

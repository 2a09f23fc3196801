//! Every key of an experiment file, except for those of layers and sweeps: another value is another fingerprint, or
//! there is a reason why no number depends on it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::super::edit::Edit;
use super::super::support::{plan_in, root};

/// The effect on the fingerprint.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Other,
    Same,
}
use Is::{Other, Same};

/// Keys with values, in dotted form.
type Edits = &'static [(&'static str, &'static str)];

/// A file in which other keys are set.
const CSV: Edits = &[
    ("data.type", "'csv'"),
    ("data.path", "'rows.csv'"),
    ("data.target", "'kind'"),
    ("data.ignore", "['day', 'site', 'note']"),
    ("data.missing", "'mean'"),
];
const TEXTS: Edits = &[
    ("data.type", "'csv'"),
    ("data.path", "'rows.csv'"),
    ("data.target", "'kind'"),
    ("data.features", "'note'"),
    ("data.columns", "[{ name = 'note', type = 'text' }]"),
    ("data.tokens.length", "4"),
    ("model.type", "'transformer_classifier'"),
    ("model.hidden", ""),
];
/// The same with a tokenizer from a file.
const WORDS: Edits = &[
    ("data.type", "'csv'"),
    ("data.path", "'rows.csv'"),
    ("data.target", "'kind'"),
    ("data.features", "'note'"),
    ("data.columns", "[{ name = 'note', type = 'text' }]"),
    ("data.tokens.path", "'words.json'"),
    ("data.tokens.length", "4"),
    ("model.type", "'transformer_classifier'"),
    ("model.hidden", ""),
];
/// Documents in an item that are kept apart.
const DOCUMENTS: Edits = &[
    ("data.type", "'csv'"),
    ("data.path", "'rows.csv'"),
    ("data.features", "'note'"),
    ("data.columns", "[{ name = 'note', type = 'text' }]"),
    ("data.tokens.length", "4"),
    ("data.tokens.separator", "'o'"),
    ("data.tokens.document_mask", "true"),
    ("model.type", "'transformer_lm'"),
    ("model.hidden", ""),
];
/// Conversations.
const CHATS: Edits = &[
    ("data.type", "'json_lines'"),
    ("data.path", "'chats.jsonl'"),
    ("data.columns", "[{ name = 'messages', type = 'chat' }]"),
    ("data.tokens.template", "'chat.jinja'"),
    ("data.tokens.length", "4"),
    ("model.type", "'transformer_lm'"),
    ("model.hidden", ""),
];
/// Texts, some of whose tokens are hidden.
const MASKED: Edits = &[
    ("data.type", "'csv'"),
    ("data.path", "'rows.csv'"),
    ("data.features", "'note'"),
    ("data.columns", "[{ name = 'note', type = 'text' }]"),
    ("data.tokens.tokenizer", "'wordpiece'"),
    ("data.tokens.length", "4"),
    ("data.tokens.masked", "0.2"),
    ("model.type", "'bert'"),
    ("model.head", "'tokens'"),
    ("model.hidden", ""),
];
const VALUES: Edits = &[
    ("data.type", "'csv'"),
    ("data.path", "'rows.csv'"),
    ("data.target", "'a'"),
    ("data.features", "['b']"),
    ("data.missing", "'mean'"),
];
/// Rows as the nodes of a graph.
const NODES: Edits = &[
    ("data.type", "'csv'"),
    ("data.path", "'nodes.csv'"),
    ("data.target", "'kind'"),
    ("data.ignore", "'name'"),
    ("data.graph.edges", "'edges.csv'"),
];
/// Rows as the nodes of many graphs.
const GRAPHS: Edits = &[
    ("data.type", "'csv'"),
    ("data.path", "'graphs.csv'"),
    ("data.target", "'kind'"),
    ("data.ignore", "['graph', 'other']"),
    ("data.graph.edges", "'pairs of nodes.csv'"),
    ("data.graph.of", "'graph'"),
    ("model.type", ""),
    ("model.hidden", ""),
    (
        "model.layers",
        "[{ type = 'graph_pool' }, { type = 'linear' }]",
    ),
];
/// Pairs of the nodes of a graph.
const LINKS: Edits = &[
    ("data.type", "'csv'"),
    ("data.path", "'nodes.csv'"),
    ("data.features", "'a'"),
    ("data.graph.edges", "'edges.csv'"),
    ("data.graph.items", "'links'"),
    ("model.type", ""),
    ("model.hidden", ""),
    (
        "model.layers",
        "[{ type = 'edge_ends' }, { type = 'linear' }]",
    ),
];
/// The edges of a graph.
const EDGES: Edits = &[
    ("data.type", "'csv'"),
    ("data.path", "'nodes.csv'"),
    ("data.features", "'a'"),
    ("data.target", "'weight'"),
    ("data.graph.edges", "'edges.csv'"),
    ("data.graph.items", "'edges'"),
    ("data.graph.directed", "true"),
    ("data.graph.features", "'other'"),
    ("model.type", ""),
    ("model.hidden", ""),
    (
        "model.layers",
        "[{ type = 'edge_ends' }, { type = 'linear' }]",
    ),
];
/// The nodes of a graph with messages.
const MESSAGES: Edits = &[
    ("data.type", "'csv'"),
    ("data.path", "'nodes.csv'"),
    ("data.target", "'kind'"),
    ("data.ignore", "'name'"),
    ("data.graph.edges", "'edges.csv'"),
    ("model.type", ""),
    ("model.hidden", ""),
    ("model.layers", "[{ type = 'sage', out_features = 2 }]"),
];
const LOOKAHEAD: Edits = &[("strategy.type", "'lookahead'")];
const SWA: Edits = &[("strategy.type", "'swa'"), ("strategy.start_epoch", "1")];
/// Something is predicted in the three steps of the table.
const HYBRID: Edits = &[
    ("strategy.type", "'hybrid'"),
    ("strategy.warmup_steps", "0"),
    ("strategy.full_steps", "1"),
];
const MOMENTUM: Edits = &[
    ("strategy.type", "'hybrid'"),
    ("strategy.warmup_steps", "0"),
    ("strategy.full_steps", "1"),
    ("strategy.predictor", "'momentum'"),
];
const DMD: Edits = &[
    ("strategy.type", "'hybrid'"),
    ("strategy.warmup_steps", "0"),
    ("strategy.full_steps", "1"),
    ("strategy.predictor", "'dmd'"),
];
const ADAPTED: Edits = &[(
    "adapters",
    "[{ type = 'lora', parameters = 'linear_1.weight' }]",
)];
const WITH_ADAPTER: Edits = &[
    ("init.from", "'first.json'"),
    (
        "adapters",
        "[{ type = 'lora', parameters = 'linear_1.weight', rank = 1 }]",
    ),
];
const FIRST: Edits = &[("init.from", "'first.json'")];
/// A student of the shipped teacher.
const TAUGHT: Edits = &[
    ("data.split", "{ valid = 0.2, test = 0.2 }"),
    ("strategy.type", "'distill'"),
    ("strategy.teacher", "'teacher.capsule.tar.zst'"),
];
/// Two networks that train in turn.
const PAIR: Edits = &[
    ("model.type", ""),
    ("model.hidden", ""),
    (
        "model.layers",
        "[{ type = 'noise', size = 2 }, { type = 'sequence', name = 'generator', layers = [{ type = 'linear' }] }, { type = 'sequence', name = 'discriminator', layers = [{ type = 'linear' }] }]",
    ),
    ("strategy.type", "'adversarial'"),
];
/// The same for the class of each item.
const CONDITIONAL_PAIR: Edits = &[
    ("model.type", ""),
    ("model.hidden", ""),
    (
        "model.layers",
        "[{ type = 'noise', size = 2 }, { type = 'sequence', name = 'generator', layers = [{ type = 'concat', inputs = ['previous', 'condition'] }, { type = 'linear' }] }, { type = 'sequence', name = 'discriminator', layers = [{ type = 'concat', inputs = ['previous', 'condition'] }, { type = 'linear' }] }]",
    ),
    ("strategy.type", "'adversarial'"),
    ("strategy.conditional", "true"),
];
const SLURM: Edits = &[("launch.type", "'slurm'")];
const COMMANDS: Edits = &[
    ("launch.type", "'command'"),
    ("launch.submit", "'qsub {script}'"),
];
const ARRAY_COMMANDS: Edits = &[
    ("launch.type", "'command'"),
    ("launch.submit", "'qsub -J 0-{last} {script}'"),
    ("launch.index", "'PBS_ARRAY_INDEX'"),
];
const DIGITS: Edits = &[("data.type", "'digits'")];
const IRIS: Edits = &[("data.type", "'iris'")];
const MNIST: Edits = &[
    ("data.type", "'mnist'"),
    ("data.root", "'mnist'"),
    ("data.part", "'test'"),
];
const ARRAYS: Edits = &[
    ("data.type", "'npy'"),
    ("data.path", "'iris_x.npy'"),
    ("data.target_path", "'iris_y.npy'"),
];
const PICTURES: Edits = &[("data.type", "'image_folder'"), ("data.path", "'pictures'")];
/// Rows that can be split at commas and at semicolons.
const PAIRS: Edits = &[
    ("data.type", "'csv'"),
    ("data.path", "'pairs.csv'"),
    ("task.type", "'autoencoding'"),
];
const MASKS: Edits = &[
    ("data.type", "'image_folder'"),
    ("data.path", "'pictures/a'"),
    ("data.target_path", "'masks'"),
    ("model.type", ""),
    ("model.hidden", ""),
    (
        "model.layers",
        "[{ type = 'conv2d', kernel_size = 3, padding = 'same' }]",
    ),
];
/// A network with two outputs of the same shape, and a copy of its items.
const HEADS: Edits = &[
    ("data.type", "'iris'"),
    ("model.type", ""),
    ("model.hidden", ""),
    (
        "model.layers",
        "[{ type = 'linear', name = 'a', out_features = 3 }, { type = 'linear', name = 'copy', out_features = 4 }, { type = 'linear', name = 'b', out_features = 3 }]",
    ),
    ("losses", "[{ type = 'l2', name = 'x', output = 'a' }]"),
];
const BLOBS: Edits = &[("data.type", "'blobs'")];
const REGRESSION: Edits = &[("data.type", "'regression'")];
const WAVES: Edits = &[("data.type", "'sine_windows'")];
/// An autoencoder of series.
const SERIES: Edits = &[
    ("task.type", "'autoencoding'"),
    ("model.type", ""),
    ("model.hidden", ""),
    (
        "model.layers",
        "[{ type = 'padding_mask', name = 'real' }, { type = 'gru', hidden_size = 2, mask = 'real', inputs = ['input'] }, { type = 'linear' }]",
    ),
    ("loss.type", "'mse'"),
];
const SERIES_WITH_A_PENALTY: Edits = &[
    SERIES[0],
    SERIES[1],
    SERIES[2],
    SERIES[3],
    SERIES[4],
    ("losses", "[{ type = 'l2', output = 'linear_1' }]"),
];
const BRACKETS: Edits = &[
    ("data.type", "'brackets'"),
    ("model.type", "'transformer_classifier'"),
    ("model.hidden", ""),
];
const COPIES: Edits = &[
    ("data.type", "'copy_sequence'"),
    ("model.type", "'transformer_lm'"),
    ("model.hidden", ""),
];

/// The other content of every file.
const BASE: Edits = &[
    ("model.type", "'mlp'"),
    ("model.hidden", "[4]"),
    ("optimizer.type", "'adam'"),
    ("optimizer.learning_rate", "1e-2"),
    ("train.epochs", "3"),
    ("train.batch_size", "4"),
];

/// A file, its initial settings, a key with another value, and the effect on the fingerprint.
type Row = (Edits, Edits, &'static str, &'static str, Is);

const ROWS: &[Row] = &[
    (CSV, &[], "experiment.name", "'another'", Same),
    (CSV, &[], "experiment.question", "'Why?'", Same),
    (CSV, &[], "experiment.seeds", "[2]", Other),
    (CSV, &[], "extends", "['empty.toml']", Same),
    (CSV, &[], "values", "{ x = 1 }", Same),
    // Data: where it is and what it is.
    (IRIS, &[], "data.type", "'digits'", Other),
    (MNIST, &[], "data.root", "'mnist copy'", Same),
    (MNIST, &[], "data.root", "'fashion'", Other),
    (MNIST, &[], "data.part", "'train'", Other),
    (MNIST, &[], "data.download", "false", Same),
    (MNIST, &[], "data.fallback", "'digits'", Same),
    (MNIST, &[], "data.scale", "'min_max'", Other),
    (DIGITS, &[], "data.image_size", "'28x28'", Other),
    (IRIS, &[], "data.scale", "'none'", Other),
    (MNIST, &[], "data.scale_axis", "2", Other),
    (MNIST, &[], "data.scale_axis", "0", Same),
    (MNIST, &[], "data.scale_axis", "'all'", Same),
    (CSV, &[], "data.path", "'copy.csv'", Same),
    (CSV, &[], "data.path", "'other.csv'", Other),
    (CSV, &[], "data.path", "['rows.csv', 'other.csv']", Other),
    (CSV, &[], "data.valid_path", "'other.csv'", Other),
    (CSV, &[], "data.test_path", "'other.csv'", Other),
    (PAIRS, &[], "data.delimiter", "';'", Other),
    (CSV, &[], "data.header", "true", Same),
    (CSV, &[], "data.missing_values", "['', '101']", Other),
    (CSV, &[], "data.skip_rows", "0", Same),
    (CSV, &[], "data.skip_rows_after_header", "1", Other),
    (CSV, &[], "data.skip_footer", "1", Other),
    (CSV, &[], "data.comment", "'#'", Other),
    (
        PAIRS,
        &[("data.delimiter", "';'")],
        "data.decimal",
        "','",
        Other,
    ),
    (
        PAIRS,
        &[("data.delimiter", "';'")],
        "data.thousands",
        "','",
        Other,
    ),
    (CSV, &[], "data.strip", "['$']", Other),
    (CSV, &[], "data.date_format", "'%Y-%m-%d'", Other),
    (CSV, &[], "data.features", "['a']", Other),
    (CSV, &[], "data.weight", "'a'", Other),
    (
        CSV,
        &[("data.inputs", "[{ name = 'x' }]")],
        "data.inputs",
        "[{ name = 'x', columns = ['b', 'a'] }]",
        Other,
    ),
    (
        CSV,
        &[("data.inputs", "[{ name = 'x' }]")],
        "data.inputs",
        "[{ name = 'y' }]",
        Same,
    ),
    (
        CSV,
        &[("data.ignore", "['day', 'note']")],
        "data.target",
        "'site'",
        Other,
    ),
    (CSV, &[], "data.ignore", "['day', 'note']", Other),
    (CSV, &[], "data.missing", "'median'", Other),
    (CSV, &[], "data.scale", "'min_max'", Other),
    (VALUES, &[], "data.target_scale", "'standardize'", Other),
    (VALUES, &[], "data.target_transform", "'quantile'", Other),
    (VALUES, &[], "data.target_transform", "'none'", Same),
    (
        CSV,
        &[],
        "data.columns",
        "[{ name = 'a', scale = 'min_max' }]",
        Other,
    ),
    (
        CSV,
        &[],
        "data.columns",
        "[{ name = 'a', clip = [1.0, 2.0] }]",
        Other,
    ),
    (
        CSV,
        &[],
        "data.columns",
        "[{ name = 'b', type = 'category' }]",
        Other,
    ),
    (
        CSV,
        &[],
        "data.columns",
        "[{ name = 'b', missing = 'zero' }]",
        Other,
    ),
    (
        CSV,
        &[("data.columns", "[{ name = 'b', type = 'category' }]")],
        "data.columns",
        "[{ name = 'b', type = 'category', encode = 'ordinal' }]",
        Other,
    ),
    (CSV, &[], "data.on_bad_item", "'skip'", Other),
    (CSV, &[], "data.graph", "{ edges = 'edges.csv' }", Other),
    (NODES, &[], "data.graph.edges", "'edges copy.csv'", Same),
    (NODES, &[], "data.graph.edges", "'other edges.csv'", Other),
    (NODES, &[], "data.graph.id", "'name'", Other),
    (NODES, &[], "data.graph.from", "'other'", Other),
    (NODES, &[], "data.graph.to", "'other'", Other),
    (NODES, &[], "data.graph.weight", "'weight'", Other),
    (NODES, &[], "data.graph.features", "'weight'", Other),
    (NODES, &[], "data.graph.directed", "true", Other),
    (MESSAGES, &[], "data.graph.neighbors", "[2]", Other),
    (GRAPHS, &[], "data.graph.of", "'other'", Other),
    (LINKS, &[], "data.graph.negatives", "1", Same),
    (LINKS, &[], "data.graph.negatives", "2", Other),
    // Other items need other layers, which are in the identity too.
    (LINKS, &[], "data.graph.items", "'links'", Same),
    (
        LINKS,
        &[],
        "model.layers",
        "[{ type = 'edge_ends', operation = 'sum' }, { type = 'linear' }]",
        Other,
    ),
    (
        EDGES,
        &[],
        "model.layers",
        "[{ type = 'edge_ends', edge_dim = 1 }, { type = 'linear' }]",
        Other,
    ),
    (
        GRAPHS,
        &[],
        "model.layers",
        "[{ type = 'graph_pool', operation = 'sum' }, { type = 'linear' }]",
        Other,
    ),
    (VALUES, &[], "data.window", "{ length = 2 }", Other),
    (
        VALUES,
        &[("data.window.length", "2")],
        "data.window.length",
        "3",
        Other,
    ),
    (
        VALUES,
        &[("data.window.length", "2")],
        "data.window.horizon",
        "2",
        Other,
    ),
    (
        VALUES,
        &[("data.window.length", "2")],
        "data.window.stride",
        "2",
        Other,
    ),
    (TEXTS, &[], "data.tokens.tokenizer", "'word'", Other),
    (TEXTS, &[], "data.tokens.length", "5", Other),
    (TEXTS, &[], "data.tokens.stride", "2", Other),
    (TEXTS, &[], "data.tokens.max_vocabulary", "5", Other),
    (TEXTS, &[], "data.tokens.min_vocabulary", "500", Other),
    (TEXTS, &[], "data.tokens.separator", "'o'", Other),
    (TEXTS, &[], "data.tokens.lowercase", "true", Other),
    (MASKED, &[], "data.tokens.masked", "0.3", Other),
    (CHATS, &[], "data.tokens.template", "'other.jinja'", Other),
    (
        CHATS,
        &[],
        "data.tokens.template",
        "'copy of chat.jinja'",
        Same,
    ),
    (CHATS, &[], "data.tokens.learn_prompts", "true", Other),
    (DOCUMENTS, &[], "data.tokens.document_mask", "false", Other),
    (
        DOCUMENTS,
        &[],
        "data.tokens.document_positions",
        "'continue'",
        Other,
    ),
    (WORDS, &[], "data.tokens.path", "'words copy.json'", Same),
    (WORDS, &[], "data.tokens.path", "'other words.json'", Other),
    (ARRAYS, &[], "data.target_path", "'iris_y2.npy'", Other),
    (
        ARRAYS,
        &[
            ("data.valid_path", "'iris_x.npy'"),
            ("data.path", "'iris_x2.npy'"),
            ("data.valid_target_path", "'iris_y.npy'"),
        ],
        "data.valid_target_path",
        "'iris_y2.npy'",
        Other,
    ),
    (
        ARRAYS,
        &[
            ("data.test_path", "'iris_x.npy'"),
            ("data.path", "'iris_x2.npy'"),
            ("data.test_target_path", "'iris_y.npy'"),
        ],
        "data.test_target_path",
        "'iris_y2.npy'",
        Other,
    ),
    (PICTURES, &[], "data.path", "'links'", Same),
    (PICTURES, &[], "data.path", "'links to others'", Other),
    (PICTURES, &[], "data.size", "6", Other),
    (PICTURES, &[], "data.channels", "'gray'", Other),
    (MASKS, &[], "data.target_path", "'other masks'", Other),
    (BLOBS, &[], "data.seed", "1", Other),
    (BLOBS, &[], "data.num_items", "999", Other),
    (BLOBS, &[], "data.noise", "0.5", Other),
    (BLOBS, &[], "data.num_classes", "4", Other),
    (BLOBS, &[], "data.num_features", "3", Other),
    (REGRESSION, &[], "data.num_targets", "2", Other),
    (REGRESSION, &[], "data.outliers", "0.5", Other),
    (REGRESSION, &[], "data.target", "'counts'", Other),
    (WAVES, &[], "data.length", "33", Other),
    (COPIES, &[], "data.vocabulary", "11", Other),
    (BRACKETS, &[], "data.kinds", "3", Other),
    (&[("data.type", "'shapes'")], &[], "data.size", "9", Other),
    (
        &[("data.type", "'shapes'")],
        &[],
        "data.target",
        "'labels'",
        Other,
    ),
    (IRIS, &[], "train.sampler", "'balanced'", Other),
    (IRIS, &[], "train.sampler", "'random'", Same),
    (
        IRIS,
        &[],
        "loss",
        "{ type = 'cross_entropy', class_weights = 'balanced' }",
        Other,
    ),
    (WAVES, SERIES, "loss.mask", "'real'", Other),
    (
        WAVES,
        SERIES_WITH_A_PENALTY,
        "losses",
        "[{ type = 'l2', output = 'linear_1', mask = 'real' }]",
        Other,
    ),
    (DIGITS, &[], "data.augment.flip", "0.5", Other),
    (DIGITS, &[], "data.augment.flip_vertical", "0.5", Other),
    (DIGITS, &[], "data.augment.shift", "0.1", Other),
    (DIGITS, &[], "data.augment.rotate", "5.0", Other),
    (DIGITS, &[], "data.augment.erase", "0.1", Other),
    (DIGITS, &[], "data.augment.crop", "1", Other),
    (DIGITS, &[], "data.augment.brightness", "0.4", Other),
    (DIGITS, &[], "data.augment.contrast", "0.4", Other),
    (PICTURES, &[], "data.augment.saturation", "0.4", Other),
    (PICTURES, &[], "data.augment.hue", "0.1", Other),
    (DIGITS, &[], "data.augment.resized_crop", "{}", Other),
    (
        DIGITS,
        &[("data.augment.resized_crop", "{}")],
        "data.augment.resized_crop.scale",
        "[0.5, 1.0]",
        Other,
    ),
    (
        DIGITS,
        &[("data.augment.resized_crop", "{}")],
        "data.augment.resized_crop.ratio",
        "[1.0, 1.0]",
        Other,
    ),
    (DIGITS, &[], "data.augment.mixup", "{ alpha = 0.2 }", Other),
    (
        DIGITS,
        &[("data.augment.mixup.alpha", "0.2")],
        "data.augment.mixup.alpha",
        "0.4",
        Other,
    ),
    (
        DIGITS,
        &[("data.augment.mixup.alpha", "0.2")],
        "data.augment.mixup.probability",
        "0.5",
        Other,
    ),
    (DIGITS, &[], "data.augment.cutmix", "{ alpha = 1.0 }", Other),
    (
        DIGITS,
        &[("data.augment.cutmix.alpha", "1.0")],
        "data.augment.cutmix.alpha",
        "0.5",
        Other,
    ),
    (
        DIGITS,
        &[("data.augment.cutmix.alpha", "1.0")],
        "data.augment.cutmix.probability",
        "0.5",
        Other,
    ),
    (IRIS, &[], "data.label_noise", "0.25", Other),
    (CSV, &[], "data.split.valid", "0.3", Other),
    (CSV, &[], "data.split.test", "0.1", Other),
    (CSV, &[], "data.split.stratified", "false", Other),
    (CSV, &[], "data.split.seed", "9", Other),
    (CSV, &[], "data.split.seed", "'run'", Other),
    (CSV, &[], "data.split.order", "'time'", Other),
    (CSV, &[], "data.split.order_by", "'day'", Other),
    (CSV, &[], "data.split.group_by", "'day'", Other),
    (CSV, &[], "data.split.folds", "3", Other),
    (
        CSV,
        &[("data.split.folds", "3")],
        "data.split.fold",
        "1",
        Other,
    ),
    // The task.
    (CSV, &[], "task.type", "'autoencoding'", Other),
    (CSV, &[], "task.metrics", "['accuracy', 'f_beta']", Other),
    (
        DIGITS,
        &[("task.metrics", "['accuracy', 'top_k_accuracy']")],
        "task.top_k",
        "2",
        Other,
    ),
    (
        CSV,
        &[("task.metrics", "['accuracy', 'f_beta']")],
        "task.beta",
        "3.0",
        Other,
    ),
    (
        CSV,
        &[("task.metrics", "['accuracy', 'f_beta']")],
        "task.average",
        "'micro'",
        Other,
    ),
    (
        CSV,
        &[("task.metrics", "['accuracy', 'f_beta']")],
        "task.zero_division",
        "'one'",
        Other,
    ),
    (
        CSV,
        &[
            ("task.metrics", "['accuracy', 'f_beta']"),
            ("task.average", "'binary'"),
        ],
        "task.positive_class",
        "'high'",
        Other,
    ),
    (
        HEADS,
        &[("losses", "[{ type = 'l2', output = 'b' }]")],
        "task.output",
        "'a'",
        Other,
    ),
    (HEADS, &[], "losses", "[]", Other),
    (
        HEADS,
        &[],
        "losses",
        "[{ type = 'l2', name = 'y', output = 'a' }]",
        Other,
    ),
    (
        HEADS,
        &[],
        "losses",
        "[{ type = 'l2', name = 'x', output = 'b' }]",
        Other,
    ),
    (
        HEADS,
        &[],
        "losses",
        "[{ type = 'l1', name = 'x', output = 'a' }]",
        Other,
    ),
    (
        HEADS,
        &[],
        "losses",
        "[{ type = 'l2', name = 'x', output = 'a', reduction = 'sum' }]",
        Other,
    ),
    (
        HEADS,
        &[],
        "losses",
        "[{ type = 'l2', name = 'x', output = 'a', weight = 0.5 }]",
        Other,
    ),
    (
        HEADS,
        &[("losses", "[{ type = 'cross_entropy', output = 'a' }]")],
        "losses",
        "[{ type = 'cross_entropy', output = 'a', label_smoothing = 0.1 }]",
        Other,
    ),
    (
        HEADS,
        &[("losses", "[{ type = 'cross_entropy', output = 'a' }]")],
        "losses",
        "[{ type = 'cross_entropy', output = 'a', metrics = ['mcc'] }]",
        Other,
    ),
    (
        VALUES,
        &[
            ("model.type", ""),
            ("model.hidden", ""),
            (
                "model.layers",
                "[{ type = 'linear', name = 'a' }, { type = 'linear', name = 'b', inputs = ['input'] }]",
            ),
            ("data.missing", "'drop'"),
            ("losses", "[{ type = 'mse', output = 'a' }]"),
        ],
        "losses",
        "[{ type = 'cross_entropy', output = 'a', target = 'kind' }]",
        Other,
    ),
    (CSV, &[], "objective.metric", "'valid/loss'", Other),
    (CSV, &[], "objective.baseline", "'base'", Same),
    (CSV, &[], "verdict.smallest_difference", "0.005", Same),
    (CSV, &[], "verdict.expected_sd", "0.004", Same),
    (CSV, &[], "verdict.looks", "5", Same),
    (
        CSV,
        &[("verdict.looks", "5")],
        "verdict.max_seeds",
        "20",
        Same,
    ),
    // The training.
    (CSV, &[], "train.epochs", "4", Other),
    (CSV, &[], "train.batch_size", "5", Other),
    (CSV, &[], "train.micro_batch_size", "2", Other),
    (CSV, &[], "train.gradient_checkpointing", "true", Other),
    (CSV, &[], "train.gradient_checkpointing", "'blocks'", Other),
    (CSV, &[], "train.log_gradient_norms", "'global'", Other),
    (CSV, &[], "train.log_every", "1", Same),
    (CSV, &[], "train.early_stopping.patience", "2", Other),
    (
        CSV,
        &[("train.early_stopping.patience", "2")],
        "train.early_stopping.min_delta",
        "0.5",
        Other,
    ),
    (
        CSV,
        &[("train.early_stopping.patience", "2")],
        "train.early_stopping.metric",
        "'valid/loss'",
        Other,
    ),
    (
        CSV,
        &[("train.ema", "{ }")],
        "train.ema.decay",
        "0.5",
        Other,
    ),
    (CSV, &[], "train.ema.decay", "0.5", Other),
    (CSV, &[], "train.ema.start_step", "1", Other),
    (CSV, &[], "strategy.type", "'lookahead'", Other),
    (CSV, &[], "strategy.type", "'standard'", Same),
    (CSV, PAIR, "strategy.generator", "'generator'", Same),
    (CSV, PAIR, "strategy.discriminator", "'discriminator'", Same),
    (CSV, PAIR, "strategy.discriminator_steps", "2", Other),
    (CSV, PAIR, "strategy.conditional", "false", Same),
    (CSV, CONDITIONAL_PAIR, "strategy.conditional", "true", Same),
    (CSV, CONDITIONAL_PAIR, "loss.type", "'lsgan'", Other),
    (CSV, PAIR, "loss.type", "'lsgan'", Other),
    (CSV, PAIR, "loss.type", "'gan'", Same),
    (CSV, LOOKAHEAD, "strategy.sync_steps", "2", Other),
    (CSV, LOOKAHEAD, "strategy.alpha", "0.3", Other),
    (CSV, SWA, "strategy.start_epoch", "2", Other),
    (CSV, SWA, "strategy.every_steps", "1", Other),
    (CSV, HYBRID, "strategy.preset", "'balanced'", Same),
    (CSV, HYBRID, "strategy.preset", "'aggressive'", Other),
    (CSV, HYBRID, "strategy.predictor", "'hold'", Other),
    (CSV, HYBRID, "strategy.mode", "'jump'", Other),
    (CSV, HYBRID, "strategy.warmup_steps", "1", Other),
    (CSV, HYBRID, "strategy.full_steps", "2", Other),
    (CSV, HYBRID, "strategy.correction_steps", "2", Other),
    (CSV, HYBRID, "strategy.max_predict_steps", "2", Other),
    (CSV, HYBRID, "strategy.confidence_threshold", "0.5", Other),
    (CSV, HYBRID, "strategy.correction_interval", "2", Other),
    (CSV, HYBRID, "strategy.tolerance", "0.1", Other),
    (CSV, HYBRID, "strategy.probe_batches", "2", Other),
    (CSV, HYBRID, "strategy.snapshots", "4", Other),
    (CSV, HYBRID, "strategy.max_loss_sigma", "3", Other),
    (CSV, HYBRID, "strategy.max_gradient_factor", "3", Other),
    (CSV, HYBRID, "strategy.max_prediction_error", "3", Other),
    (CSV, HYBRID, "strategy.max_oscillation", "0.3", Other),
    (CSV, MOMENTUM, "strategy.decay", "0.5", Other),
    (CSV, DMD, "strategy.rank", "2", Other),
    (CSV, &[], "checkpoint.every_epochs", "2", Same),
    (CSV, &[], "checkpoint.every_steps", "2", Same),
    (CSV, &[], "checkpoint.keep_last", "2", Same),
    (CSV, &[], "checkpoint.keep_best", "2", Same),
    (CSV, &[], "predictions.splits", "['valid']", Same),
    (
        CSV,
        &[("predictions.splits", "['valid']")],
        "predictions.format",
        "'npy'",
        Same,
    ),
    // Initial weights: what the file holds, and what is taken of it.
    (
        IRIS,
        &[],
        "adapters",
        "[{ type = 'lora', parameters = 'linear_1.weight' }]",
        Other,
    ),
    (
        IRIS,
        ADAPTED,
        "adapters",
        "[{ type = 'lora', parameters = 'linear_1.weight', rank = 2 }]",
        Other,
    ),
    (
        IRIS,
        ADAPTED,
        "adapters",
        "[{ type = 'lora', parameters = 'linear_1.weight', alpha = 4 }]",
        Other,
    ),
    (
        IRIS,
        ADAPTED,
        "adapters",
        "[{ type = 'lora', parameters = 'linear_1.weight', dropout = 0.1 }]",
        Other,
    ),
    (
        IRIS,
        ADAPTED,
        "adapters",
        "[{ type = 'lora', parameters = 'linear_1.weight', scaling = 'rslora' }]",
        Other,
    ),
    (
        IRIS,
        ADAPTED,
        "adapters",
        "[{ type = 'lora', parameters = 'linear_1.weight', train = 'linear_2.bias' }]",
        Other,
    ),
    (
        IRIS,
        ADAPTED,
        "adapters",
        "[{ type = 'lora', parameters = 'linear_1.weight', base = 'int8' }]",
        Other,
    ),
    (
        IRIS,
        ADAPTED,
        "adapters",
        "[{ type = 'lora', parameters = 'linear_1.weight', base = 'full' }]",
        Same,
    ),
    (
        IRIS,
        ADAPTED,
        "adapters",
        "[{ type = 'lora', parameters = '*.weight' }]",
        Other,
    ),
    (
        IRIS,
        ADAPTED,
        "adapters",
        "[{ type = 'lora', parameters = ['linear_1.w*'], rank = 8, alpha = 8.0 }]",
        Same,
    ),
    (IRIS, &[], "init.from", "'first.json'", Other),
    (IRIS, FIRST, "init.from", "'copy of first.json'", Same),
    (IRIS, FIRST, "init.from", "'second.json'", Other),
    (IRIS, WITH_ADAPTER, "init.adapter", "'adapter'", Other),
    (IRIS, WITH_ADAPTER, "init.adapter", "'other adapter'", Other),
    (
        DIGITS,
        TAUGHT,
        "strategy.teacher",
        "'copy of teacher.capsule.tar.zst'",
        Same,
    ),
    (DIGITS, TAUGHT, "strategy.weight", "0.25", Other),
    (DIGITS, TAUGHT, "strategy.temperature", "3.0", Other),
    (IRIS, FIRST, "init.layout", "'pytorch'", Same),
    (IRIS, FIRST, "init.top_level_key", "'more'", Other),
    (IRIS, FIRST, "init.remap", "[['^none', 'x']]", Same),
    (IRIS, FIRST, "init.transpose", "'linear_1.weight'", Other),
    (IRIS, FIRST, "init.only", "'linear_1'", Other),
    (IRIS, FIRST, "init.exclude", "'linear_1'", Other),
    (IRIS, FIRST, "init.partial", "true", Same),
    (IRIS, FIRST, "init.skip_mismatched", "true", Same),
    // Device and limits.
    (CSV, &[], "backend.device", "'wgpu'", Other),
    (CSV, &[], "backend.precision", "'f64'", Other),
    (CSV, &[], "backend.required", "true", Same),
    (CSV, &[], "backend.kernels", "'reference'", Other),
    (CSV, &[], "backend.arithmetic", "'portable'", Other),
    (CSV, &[], "memory.limit", "'2GiB'", Same),
    (CSV, &[], "memory.reserve", "'1GiB'", Same),
    (CSV, &[], "memory.on_exceed", "'accumulate'", Same),
    (CSV, &[], "limits.run", "'2h'", Same),
    (CSV, &[], "limits.experiment", "'2h'", Same),
    // Where runs are trained.
    (CSV, &[], "launch.type", "'slurm'", Same),
    (CSV, &[], "notify", "[{ url_variable = 'HOOK' }]", Same),
    (CSV, &[], "launch.gpus", "1", Same),
    (CSV, SLURM, "launch.partition", "'gpu'", Same),
    (CSV, SLURM, "launch.account", "'ours'", Same),
    (CSV, SLURM, "launch.time", "'4h'", Same),
    (CSV, SLURM, "launch.grace", "'3m'", Same),
    (CSV, SLURM, "launch.cpus", "4", Same),
    (CSV, SLURM, "launch.gpus", "1", Same),
    (CSV, SLURM, "launch.memory", "'16GiB'", Same),
    (CSV, SLURM, "launch.arguments", "['--qos=long']", Same),
    (CSV, SLURM, "launch.max_running", "50", Same),
    (CSV, SLURM, "launch.runs_per_job", "4", Same),
    (CSV, SLURM, "launch.setup", "['module load cuda']", Same),
    (CSV, COMMANDS, "launch.submit", "'qsub -V {script}'", Same),
    (CSV, COMMANDS, "launch.status", "'qstat {job}'", Same),
    (CSV, COMMANDS, "launch.cancel", "'qdel {job}'", Same),
    (CSV, ARRAY_COMMANDS, "launch.index", "'PBS_ARRAYID'", Same),
    (CSV, COMMANDS, "launch.runs_per_job", "4", Same),
    (CSV, COMMANDS, "launch.setup", "['module load cuda']", Same),
];

/// Keys of failures that may be retried are those of one class.
const FAILURES: &[(&str, &str)] = &[
    ("retries", "3"),
    ("backoff", "'1s'"),
    ("then", "'stop'"),
    ("learning_rate_factor", "0.5"),
];

/// The fingerprint of a file of such keys.
fn fingerprint(folder: &Path, edits: &[(&str, &str)]) -> Result<String, String> {
    let mut lines: Vec<(&str, &str)> = BASE.to_vec();
    for (key, value) in edits {
        lines.retain(|(known, _)| known != key);
        // A table as a whole and one of its keys would be set twice.
        lines.retain(|(known, _)| !key.starts_with(&format!("{known}.")));
        lines.push((key, value));
    }
    let lines = lines.iter().filter(|(_, value)| !value.is_empty());
    let text: String = lines
        .map(|(key, value)| format!("{key} = {value}\n"))
        .collect();
    let planned = plan_in(Some(folder), "spec.toml", &text);
    let (plan, _) = planned.map_err(|refused| format!("{text}\n{refused}"))?;
    Ok(plan.runs[0].fingerprint.clone())
}

fn write_data(folder: &Path) {
    let mut rows = String::from("day,site,a,b,kind,note\n");
    for at in 0..60_i32 {
        let b = if at % 7 == 0 {
            String::new()
        } else {
            (100 + at % 5).to_string()
        };
        let kind = if at % 3 == 0 { "high" } else { "low" };
        rows += &format!(
            "2024-{:02}-{:02},{},{}.5,{b},{kind},Word{at} of\n",
            1 + at / 28,
            1 + at % 28,
            ["x", "y", "z"][at as usize % 3],
            at * 37 % 60,
        );
    }
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    write("empty.toml", b"");
    // Weights of the network of `BASE` over the flowers, in two places of a file.
    for (name, value) in [("first", 0.5), ("copy of first", 0.5), ("second", 0.25)] {
        let row = |num: usize| vec![value; num];
        let rows = |num: usize| vec![row(4); num];
        let tensors = json!({
            "linear_1.weight": rows(4), "linear_1.bias": row(4),
            "linear_2.weight": rows(3), "linear_2.bias": row(3),
        });
        let file = json!({ "state_dict": tensors, "more": tensors });
        write(&format!("{name}.json"), file.to_string().as_bytes());
    }
    let teacher = fs::read(root().join("experiments/data/digits_teacher.capsule.tar.zst")).unwrap();
    write("teacher.capsule.tar.zst", &teacher);
    write("copy of teacher.capsule.tar.zst", &teacher);
    // Adapters of the same network.
    for (name, value) in [("adapter", 0.5_f32), ("other adapter", 0.25)] {
        let tensor = |from: usize, shape: [usize; 2]| json!({ "dtype": "F32", "shape": shape, "data_offsets": [from, from + 16] });
        let head = json!({
            "base_model.model.linear_1.lora_A.weight": tensor(0, [1, 4]),
            "base_model.model.linear_1.lora_B.weight": tensor(16, [4, 1]),
        });
        let head = head.to_string();
        let mut bytes = (head.len() as u64).to_le_bytes().to_vec();
        bytes.extend(head.as_bytes());
        bytes.extend([value.to_le_bytes(); 8].concat());
        write(&format!("{name}/adapter_model.safetensors"), &bytes);
        let config = json!({ "peft_type": "LORA", "r": 1, "lora_alpha": 8 });
        write(
            &format!("{name}/adapter_config.json"),
            config.to_string().as_bytes(),
        );
    }
    let chat = r#"{"messages": [{"role": "user", "content": "Is it open?"}, {"role": "assistant", "content": "It is closed."}]}"#;
    write("chats.jsonl", format!("{chat}\n").repeat(9).as_bytes());
    for (name, start) in [("chat", "<"), ("copy of chat", "<"), ("other", "[")] {
        let template = format!(
            "{{% for m in messages %}}{start}{{{{ m.role }}}}>{{{{ m.content }}}}{{% endfor %}}"
        );
        write(&format!("{name}.jinja"), template.as_bytes());
    }
    write("rows.csv", rows.as_bytes());
    write("copy.csv", rows.as_bytes());
    write("other.csv", rows.edit("101", "102").as_bytes());
    let pair = |at: usize| {
        format!(
            "{};{},{}
",
            at % 2,
            ["x", "y"][at % 2],
            at % 3
        )
    };
    let pairs = String::from(
        "a;b,c
",
    ) + &(0..60).map(pair).collect::<String>();
    write("pairs.csv", pairs.as_bytes());
    let (mut nodes, mut edges) = (String::from("name,a,kind\n"), String::new());
    for at in 0..60 {
        nodes += &format!("{},{}.5,{}\n", 59 - at, at * 37 % 60, ["x", "y"][at % 2]);
        edges += &format!("{at},{},{},{}\n", at * 7 % 60, at * 11 % 60, 1 + at % 3);
    }
    let head = "source,target,other,weight\n";
    write("nodes.csv", nodes.as_bytes());
    write("edges.csv", format!("{head}{edges}").as_bytes());
    write("edges copy.csv", format!("{head}{edges}").as_bytes());
    write(
        "other edges.csv",
        format!("{head}{edges}8,9,10,1\n").as_bytes(),
    );
    let (mut graphs, mut pairs) = (
        String::from("graph,other,a,kind\n"),
        String::from("source,target\n"),
    );
    for at in 0..60 {
        let graph = at / 2;
        graphs += &format!(
            "{graph},{},{}.5,{}\n",
            graph / 4 * 2 + graph % 2,
            at * 37 % 60,
            ["x", "y"][graph % 2]
        );
        if at % 2 == 1 {
            pairs += &format!("{},{at}\n", at - 1);
        }
    }
    write("graphs.csv", graphs.as_bytes());
    write("pairs of nodes.csv", pairs.as_bytes());
    let words = |name: &str, word: &str| {
        let model = format!(
            r#"{{ "type": "WordLevel", "vocab": {{ "?": 0, "{word}": 1, "[PAD]": 2 }}, "unk_token": "?" }}"#
        );
        let text =
            format!(r#"{{ "model": {model}, "pre_tokenizer": {{ "type": "Whitespace" }} }}"#);
        write(name, text.as_bytes());
    };
    words("words.json", "the");
    words("words copy.json", "the");
    words("other words.json", "a");
    let arrays = root().join("experiments/data");
    for (from, to) in [("iris_x.npy", "iris_x"), ("iris_y.npy", "iris_y")] {
        let bytes = fs::read(arrays.join(from)).unwrap();
        write(&format!("{to}.npy"), &bytes);
        let mut other = bytes.clone();
        let last = other.len() - 8;
        other[last] ^= 1;
        write(&format!("{to}2.npy"), &other);
    }
    for (place, fill) in [("mnist", 1), ("mnist copy", 1), ("fashion", 2)] {
        for part in ["train", "t10k"] {
            let header = |magic: u8| [&[0, 0, 8, magic][..], &40_u32.to_be_bytes()].concat();
            let size = 28_u32.to_be_bytes();
            let pixels = vec![fill; 40 * 784];
            let images = [&header(3)[..], &size, &size, &pixels].concat();
            write(&format!("{place}/{part}-images-idx3-ubyte"), &images);
            let labels: Vec<u8> = (0..40).map(|at| at % 10).collect();
            let labels = [&header(1)[..], &labels].concat();
            write(&format!("{place}/{part}-labels-idx1-ubyte"), &labels);
        }
    }
    for (place, class, fill) in [
        ("pictures", "a", 10),
        ("pictures", "b", 20),
        ("more", "b", 30),
        ("masks", "", 1),
        ("other masks", "", 2),
    ] {
        for at in 0..12 {
            let path = folder.join(place).join(class).join(format!("{at}.png"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            image::GrayImage::from_pixel(8, 8, image::Luma([fill]))
                .save(path)
                .unwrap();
        }
    }
    for (links, second) in [("links", "pictures"), ("links to others", "more")] {
        fs::create_dir(folder.join(links)).unwrap();
        for (class, of) in [("a", "pictures"), ("b", second)] {
            let link = folder.join(links).join(class);
            #[cfg(unix)]
            std::os::unix::fs::symlink(folder.join(of).join(class), link).unwrap();
            #[cfg(not(unix))]
            std::os::windows::fs::symlink_dir(folder.join(of).join(class), link).unwrap();
        }
    }
}

fn schema() -> Json {
    let text = fs::read_to_string(root().join("schemas/experiment.schema.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Every key of a schema below a path, tables taken apart.
fn keys_of(schema: &Json, at: &str, keys: &mut BTreeSet<String>) {
    let variants = schema["anyOf"].as_array().into_iter().flatten();
    let tables: Vec<&Json> = [schema].into_iter().chain(variants).collect();
    let properties = tables
        .iter()
        .filter_map(|table| table["properties"].as_object());
    let mut is_table = false;
    for (key, inner) in properties.flatten() {
        is_table = true;
        let key = if at.is_empty() {
            key.clone()
        } else {
            format!("{at}.{key}")
        };
        keys_of(inner, &key, keys);
    }
    if !is_table {
        keys.insert(at.to_owned());
    }
}

#[test]
fn each_key_of_a_file_is_in_the_fingerprint_or_known_not_to_be() {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path());
    let mut wrong = Vec::new();
    for (file, before, key, value, expected) in ROWS {
        let edits = [*file, *before].concat();
        let is = |edits: &[(&str, &str)]| fingerprint(folder.path(), edits);
        let then = is(&edits);
        let now = is(&[&edits[..], &[(*key, *value)]].concat());
        match (then, now) {
            (Ok(then), Ok(now)) => {
                let found = if then == now { Same } else { Other };
                if found != *expected {
                    wrong.push(format!("{key} = {value} is {found:?} work"));
                }
            }
            (then, now) => wrong.extend([then, now].into_iter().filter_map(Result::err)),
        }
    }
    let schema = schema();
    let mut keys = BTreeSet::new();
    for (table, inner) in schema["properties"].as_object().unwrap() {
        // Layers are checked in plans, and sweeps and searches create plans; `variants` has the others.
        if ![
            "model",
            "sweep",
            "search",
            "optimizer",
            "scheduler",
            "loss",
            "on_failure",
        ]
        .contains(&&**table)
        {
            keys_of(inner, table, &mut keys);
        }
    }
    let known = |key: &String| {
        // `backend.conv` is the former name of `backend.kernels`.
        let others = ["data.augment", "train.ema", "backend.conv"];
        ROWS.iter().any(|(.., row, _, _)| row == key) || others.contains(&key.as_str())
    };
    wrong.extend(
        keys.iter()
            .filter(|key| !known(key))
            .map(|key| format!("{key} has no row")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_done_about_failures_is_in_no_fingerprint() {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path());
    let mut keys = BTreeSet::new();
    keys_of(
        &schema()["properties"]["on_failure"],
        "on_failure",
        &mut keys,
    );
    let plain = fingerprint(folder.path(), IRIS).unwrap();
    for key in keys {
        let (table, last) = key.rsplit_once('.').unwrap();
        let (_, value) = FAILURES.iter().find(|(known, _)| *known == last).unwrap();
        let (retries, limit) = (format!("{table}.retries"), ("limits.run", "'2h'"));
        let edits = [IRIS, &[limit, (&retries, "2"), (&key, value)]].concat();
        match fingerprint(folder.path(), &edits) {
            Ok(now) => assert_eq!(now, plain, "{key}"),
            // Not every class may be retried.
            Err(refused) => assert!(
                refused.contains("retries") || refused.contains("then"),
                "{refused}"
            ),
        }
    }
}

/// Keys with more than one tested value, or that need other keys.
const BY_HAND: &[&str] = &[
    "optimizer.groups",
    "optimizer.adamw.parameters",
    "loss.mask",
];

/// Types with keys that they are refused with.
const REFUSED: &[(&str, &str)] = &[
    ("noam", "scheduler.warmup_epochs"),
    ("one_cycle", "scheduler.warmup_epochs"),
    ("one_cycle", "scheduler.warmup_steps"),
    ("cross_entropy", "loss.reduction"),
    ("multi_margin", "loss.reduction"),
    ("dice", "loss.reduction"),
    ("gan", "loss.reduction"),
    ("lsgan", "loss.reduction"),
    ("hinge_gan", "loss.reduction"),
    ("wgan", "loss.reduction"),
    ("wgan_gp", "loss.reduction"),
];

/// The value of an unset key.
const USUAL: &[&str] = &["adam", "constant", "cross_entropy"];

/// Other requirements of a type, and data that its loss supports.
fn needs(table: &str, kind: &str) -> Vec<(&'static str, &'static str)> {
    match (table, kind) {
        ("optimizer", "sgd") => vec![("optimizer.momentum", "0.125")],
        ("optimizer", "muon") => vec![("optimizer.adamw.learning_rate", "0.01")],
        ("scheduler", "exponential") => vec![("scheduler.gamma", "0.5")],
        ("scheduler", "step") => vec![("scheduler.step_size", "2")],
        ("scheduler", "multi_step") => vec![("scheduler.milestones", "[2]")],
        ("scheduler", "cosine_restarts") => vec![("scheduler.period", "2")],
        ("scheduler", "noam") => vec![("scheduler.warmup_steps", "2")],
        ("scheduler", "sequence") => vec![(
            "scheduler.stages",
            "[{ type = 'linear', steps = 2 }, { type = 'constant' }]",
        )],
        ("loss", "binary_cross_entropy" | "soft_margin") => {
            vec![("data.type", "'shapes'"), ("data.target", "'labels'")]
        }
        ("loss", "poisson_nll") => vec![("data.type", "'regression'"), ("data.target", "'counts'")],
        ("loss", "quantile") => vec![("data.type", "'regression'"), ("loss.quantile", "0.75")],
        ("loss", "dice") => vec![
            ("data.type", "'shapes'"),
            ("data.target", "'mask'"),
            ("model.type", ""),
            ("model.hidden", ""),
            (
                "model.layers",
                "[{ type = 'conv2d', kernel_size = 3, padding = 'same' }]",
            ),
        ],
        ("loss", "gan" | "lsgan" | "hinge_gan" | "wgan" | "wgan_gp") => PAIR.to_vec(),
        ("loss", "cross_entropy" | "multi_margin") => Vec::new(),
        ("loss", _) => vec![("data.type", "'regression'")],
        _ => Vec::new(),
    }
}

/// Other values of a key, as text.
fn candidates(schema: &Json) -> Vec<String> {
    let usual = &schema["default"];
    let names = schema["anyOf"].as_array().into_iter().flatten();
    let names = names.flat_map(|variant| variant["enum"].as_array().cloned().unwrap_or_default());
    let mut all: Vec<Json> = names.collect();
    all.extend([false, true].map(Json::from));
    all.extend([2, 3, 1, 5].map(Json::from));
    all.extend([0.25, 0.5, 0.875, -0.5, 1.5, 1e-3].map(Json::from));
    all.retain(|value| value != usual && value.as_f64() != usual.as_f64().or(Some(f64::NAN)));
    let mut texts: Vec<String> = all.iter().map(Json::to_string).collect();
    texts.extend(["[1.0, 2.0, 3.0]".into(), "[1, 3]".into()]);
    texts.extend(["'valid/loss'".into(), "[{ type = 'constant' }]".into()]);
    texts.push("[{ type = 'linear', steps = 3 }, { type = 'constant' }]".into());
    texts
}

#[test]
fn each_setting_of_each_optimizer_scheduler_and_loss_is_in_the_fingerprint() {
    let folder = tempfile::tempdir().unwrap();
    let schema = schema();
    let (mut wrong, mut seen, mut num) = (Vec::new(), Vec::new(), 0);
    for table in ["optimizer", "scheduler", "loss"] {
        for variant in schema["properties"][table]["anyOf"].as_array().unwrap() {
            let Some(kind) = variant["properties"]["type"]["const"].as_str() else {
                continue;
            };
            let (key_of_type, name) = (format!("{table}.type"), format!("'{kind}'"));
            let mut edits = IRIS.to_vec();
            edits.push((&key_of_type, &name));
            edits.extend(needs(table, kind));
            let plain = match fingerprint(folder.path(), &edits) {
                Ok(plain) => plain,
                Err(refused) => {
                    wrong.push(refused);
                    continue;
                }
            };
            if seen.contains(&plain) && !USUAL.contains(&kind) {
                wrong.push(format!("{table}.type = {kind} is no other work"));
            }
            seen.push(plain.clone());
            let mut keys = BTreeSet::new();
            keys_of(variant, table, &mut keys);
            for key in keys {
                if key == key_of_type
                    || BY_HAND.contains(&&*key)
                    || REFUSED.contains(&(kind, &*key))
                {
                    continue;
                }
                let inner = key
                    .split('.')
                    .skip(1)
                    .fold(variant, |at, part| &at["properties"][part]);
                let mut tried = candidates(inner).into_iter().filter_map(|value| {
                    let edits = [&edits[..], &[(&*key, &*value)]].concat();
                    let now = fingerprint(folder.path(), &edits).ok()?;
                    Some((value.clone(), now))
                });
                num += 1;
                match tried.find(|(_, now)| *now != plain) {
                    Some(_) => {}
                    None => wrong.push(format!("{key} of {kind}: no value is other work")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(num > 100, "{num}");
}

//! Bytes and times of the layers of a transformer.

use super::Params;
use base::Dur;
use base::params::{Auto, Problem};

/// Bytes and times of a layer on one rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Activations of a microbatch between two layers, before they are divided in a tensor group.
    pub activation: u64,
    /// All-to-all of a layer with experts: the data of a rank for all ranks.
    pub dispatch: u64,
    /// Gradients of a layer.
    pub gradient: u64,
    /// Gradients of the word embeddings, which the first and the last stage have.
    pub words: u64,
    /// Gradients of the position embeddings, which only the first stage has.
    pub positions: u64,
    /// Forward pass of a layer without experts.
    pub forward: Dur,
    /// Forward pass of a layer with experts.
    pub forward_experts: Dur,
    /// Forward pass of the output layer.
    pub output: Dur,
    /// The backward pass, if it is given.
    backward: Auto<Dur>,
}

/// Largest message in bytes, and longest time in picoseconds.
const MOST: (u128, u128) = (1_000_000_000_000, 1_000_000_000_000_000);

impl Sizes {
    /// Returns the sizes for these parameters.
    pub fn new(p: &Params) -> Result<Sizes, Problem> {
        let [tensor, top, s, b, v, q, teraflops] =
            [p.tensor, p.top, p.sequence, p.batch, p.vocabulary, p.precision, p.teraflops].map(u128::from);
        let given = p.activation != Auto::Auto && p.gradient != Auto::Auto && p.forward != Auto::Auto;
        if p.hidden.is_none() && !given {
            let message = "neither bytes and times of a layer nor a model is given".to_owned();
            let hint = "write `activation`, `gradient` and `forward`, or `hidden`".to_owned();
            return Err(Problem { key: "hidden", message, hint });
        }
        let h = u128::from(p.hidden.unwrap_or(0));
        let bytes = |key: &'static str, bytes: u128| {
            let message = || format!("the model has {bytes} bytes of {key}, at most {} are allowed", MOST.0);
            let hint = || "use a smaller model or microbatch".to_owned();
            if bytes > MOST.0 { Err(Problem { key: "hidden", message: message(), hint: hint() }) } else { Ok(bytes as u64) }
        };
        // One operation in a picosecond is one tera-operation per second.
        let time = |operations: u128| Dur((operations / tensor / teraflops).min(MOST.1) as u64);
        let activation = match p.activation {
            Auto::Set(activation) => activation.0,
            Auto::Auto => bytes("activations", q * b * s * h)?,
        };
        let dispatch = match p.dispatch {
            Auto::Set(dispatch) => dispatch.0,
            Auto::Auto => bytes("all-to-alls", top * u128::from(activation) / tensor)?,
        };
        let gradient = match p.gradient {
            Auto::Set(gradient) => gradient.0,
            // Layer norms, and the biases after an all-reduce, are not divided (Megatron-LM, core/tensor_parallel/layers.py).
            Auto::Auto => bytes("gradients", q * ((12 * h * h + 7 * h) / tensor + 6 * h))?,
        };
        let positions = if v > 0 { s } else { 0 };
        // The attention is 8 b s h^2 + 4 b s^2 h, the rest 16 b s h^2 for each expert of a token.
        let operations = |experts: u128| (8 + 16 * experts) * b * s * h * h + 4 * b * s * s * h;
        let [forward, forward_experts] = [1, top].map(|experts| p.forward.or(time(operations(experts))));
        Ok(Sizes {
            activation,
            dispatch,
            gradient,
            words: bytes("word embeddings", q * v * h / tensor)?,
            positions: bytes("position embeddings", q * positions * h)?,
            forward,
            forward_experts,
            output: time(2 * b * s * h * v),
            backward: p.backward,
        })
    }
    /// Returns the backward pass of a layer with this forward pass.
    pub fn backward(&self, forward: Dur) -> Dur {
        self.backward.or(forward * 2)
    }
}

//! A parser for Python's pickles that executes nothing: it supports the opcodes of `torch.save` and the few globals
//! that create tensors, and refuses every other global by name.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use runner_core::diagnostic::Reason;

use super::known::{call, global, storage};
use crate::tensors::Dtype;

/// The maximum number of objects in a pickle of weights.
const MAX_OBJECTS: usize = 1 << 22;

/// A list that may be in several places.
type List = Rc<RefCell<Vec<Object>>>;
/// The items of a dictionary in order.
pub type Dict = Rc<RefCell<Vec<(Object, Object)>>>;

/// An object in a pickle.
#[derive(Clone, Debug)]
pub enum Object {
    /// An object without a meaning for weights, such as a number.
    Other,
    /// `None`
    None,
    /// An integer.
    Int(i64),
    /// A text.
    Text(Rc<str>),
    /// A tuple.
    Tuple(Rc<[Object]>),
    /// A list.
    List(List),
    /// A dictionary.
    Dict(Dict),
    /// A known Python global.
    Global(Global),
    /// Where values are.
    Storage(Storage),
    /// A tensor.
    Tensor(Rc<View>),
}

/// The known Python globals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Global {
    /// `torch._utils._rebuild_tensor_v2`, or `_rebuild_tensor`.
    Tensor,
    /// `torch._utils._rebuild_parameter`.
    Parameter,
    /// `collections.OrderedDict`.
    Dict,
    /// `torch.FloatStorage` and the like.
    Storage(Dtype),
    /// Globals that do not create tensors: sizes, devices, types.
    Harmless,
}

/// Values in a file, by their key there.
#[derive(Clone, Debug)]
pub struct Storage {
    /// The key.
    pub key: Rc<str>,
    /// The type of its values.
    pub dtype: Dtype,
    /// How many there are.
    pub num: usize,
}

/// A tensor as a view of a storage.
#[derive(Clone, Debug)]
pub struct View {
    /// Where its values are.
    pub storage: Storage,
    /// The position of the first value.
    pub offset: usize,
    /// Its sizes.
    pub shape: Vec<usize>,
    /// The stride of each axis, in values.
    pub strides: Vec<usize>,
}

/// The containers of a pickle. A few hundred bytes can nest so many that dropping the outermost, which drops those inside
/// it first, overflows the stack: here, each is dropped when nothing refers to it any more but this list.
#[derive(Default)]
struct Containers(Vec<Object>);

impl Containers {
    /// Keeps a container until all are dropped.
    fn kept(&mut self, object: Object) -> Object {
        if matches!(object, Object::Tuple(_) | Object::List(_) | Object::Dict(_)) {
            self.0.push(object.clone());
        }
        object
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        // What these contain is in this list too, and only loses a reference.
        for object in &self.0 {
            match object {
                Object::List(list) => drop(list.take()),
                Object::Dict(dict) => drop(dict.take()),
                _ => {}
            }
        }
        // Tuples contain only what was made before them.
        while self.0.pop().is_some() {}
    }
}

/// A pickle that was read.
pub struct Pickle {
    /// The outermost object. It is not to be used after the pickle is dropped, which empties it.
    pub root: Object,
    _containers: Containers,
}

/// Reads one pickle from the start of some bytes; returns the rest.
pub fn read(bytes: &[u8]) -> Result<(Pickle, &[u8]), Reason> {
    let mut machine = Machine {
        rest: bytes,
        stack: Vec::new(),
        marks: Vec::new(),
        memo: BTreeMap::new(),
        num_objects: 0,
        containers: Containers::default(),
    };
    while machine.step()? {}
    let pickle = Pickle {
        root: machine.pop()?,
        _containers: std::mem::take(&mut machine.containers),
    };
    Ok((pickle, machine.rest))
}

struct Machine<'a> {
    rest: &'a [u8],
    stack: Vec<Object>,
    marks: Vec<usize>,
    memo: BTreeMap<u64, Object>,
    num_objects: usize,
    /// After the others, which it outlives.
    containers: Containers,
}

impl<'a> Machine<'a> {
    /// Executes one opcode; returns false after the last one.
    fn step(&mut self) -> Result<bool, Reason> {
        self.num_objects += 1;
        if self.num_objects > MAX_OBJECTS {
            return Err("its pickle has more objects than a network needs".into());
        }
        let code = self.take(1)?[0];
        match code {
            b'.' => return Ok(false),
            0x80 => drop(self.take(1)?),
            0x95 => drop(self.take(8)?),
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.pop_to_mark()?),
            b'2' => {
                let top = self.stack.last().cloned().ok_or_else(short)?;
                self.stack.push(top);
            }
            b'N' => self.stack.push(Object::None),
            0x88 | 0x89 => self.stack.push(Object::Other),
            b'I' | b'L' | b'F' | b'S' | b'V' => self.text_value(code)?,
            b'J' => {
                let value = i32::from_le_bytes(self.array()?);
                self.stack.push(Object::Int(value.into()));
            }
            b'K' => {
                let value = self.take(1)?[0];
                self.stack.push(Object::Int(value.into()));
            }
            b'M' => {
                let value = u16::from_le_bytes(self.array()?);
                self.stack.push(Object::Int(value.into()));
            }
            0x8a => {
                let size = self.take(1)?[0].into();
                self.long(size)?;
            }
            0x8b => {
                let size = self.size(4)?;
                self.long(size)?;
            }
            b'G' => {
                self.take(8)?;
                self.stack.push(Object::Other);
            }
            b'X' => self.unicode(4)?,
            0x8c => self.unicode(1)?,
            0x8d => self.unicode(8)?,
            b'T' => self.unicode(4)?,
            b'U' => self.unicode(1)?,
            b'B' => self.skipped(4)?,
            b'C' => self.skipped(1)?,
            0x8e | 0x96 => self.skipped(8)?,
            b'p' | b'g' | b'q' | b'h' | b'r' | b'j' | 0x94 => self.memo(code)?,
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.stack.push(Object::Global(global(module, name)?));
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (Object::Text(module), Object::Text(name)) = (module, name) else {
                    return Err(damaged());
                };
                self.stack.push(Object::Global(global(&module, &name)?));
            }
            b'Q' => {
                let id = self.pop()?;
                self.stack.push(Object::Storage(storage(&id)?));
            }
            b'R' | 0x81 => {
                let (arguments, function) = (self.pop()?, self.pop()?);
                let Object::Tuple(arguments) = arguments else {
                    return Err(damaged());
                };
                let made = call(&function, &arguments)?;
                let made = self.containers.kept(made);
                self.stack.push(made);
            }
            // The state that it would set does not concern weights.
            b'b' => drop(self.pop()?),
            _ => self.container(code)?,
        }
        Ok(true)
    }

    /// Opcodes of tuples, lists and dictionaries.
    fn container(&mut self, code: u8) -> Result<(), Reason> {
        let made = match code {
            b')' => Object::Tuple(Rc::new([])),
            b't' => Object::Tuple(self.pop_to_mark()?.into()),
            0x85..=0x87 => {
                let num = usize::from(code - 0x84);
                let start = self.stack.len().checked_sub(num).ok_or_else(short)?;
                Object::Tuple(self.stack.split_off(start).into())
            }
            b']' => Object::List(List::default()),
            b'l' => Object::List(Rc::new(RefCell::new(self.pop_to_mark()?))),
            b'}' => Object::Dict(Dict::default()),
            b'd' => {
                let items = self.pop_to_mark()?;
                Object::Dict(Rc::new(RefCell::new(pairs(items)?)))
            }
            b'a' | b'e' => {
                let items = if code == b'a' {
                    vec![self.pop()?]
                } else {
                    self.pop_to_mark()?
                };
                match self.stack.last() {
                    Some(Object::List(list)) => list.borrow_mut().extend(items),
                    Some(Object::Other) => {}
                    _ => return Err(damaged()),
                }
                return Ok(());
            }
            b's' | b'u' => {
                let items = if code == b's' {
                    let (value, key) = (self.pop()?, self.pop()?);
                    vec![key, value]
                } else {
                    self.pop_to_mark()?
                };
                match self.stack.last() {
                    Some(Object::Dict(dict)) => dict.borrow_mut().extend(pairs(items)?),
                    Some(Object::Other) => {}
                    _ => return Err(damaged()),
                }
                return Ok(());
            }
            other => {
                return Err(Reason(format!(
                    "its pickle has the opcode {other:#04x}, which is not used in weight files"
                )));
            }
        };
        let made = self.containers.kept(made);
        self.stack.push(made);
        Ok(())
    }

    fn memo(&mut self, code: u8) -> Result<(), Reason> {
        let key = match code {
            b'p' | b'g' => self.line()?.parse().map_err(|_| damaged())?,
            b'q' | b'h' => self.take(1)?[0].into(),
            b'r' | b'j' => u32::from_le_bytes(self.array()?).into(),
            _ => self.memo.len() as u64,
        };
        if matches!(code, b'g' | b'h' | b'j') {
            let known = self.memo.get(&key).cloned().ok_or_else(damaged)?;
            self.stack.push(known);
        } else {
            let top = self.stack.last().cloned().ok_or_else(short)?;
            self.memo.insert(key, top);
        }
        Ok(())
    }

    /// A value written as a line of text.
    fn text_value(&mut self, code: u8) -> Result<(), Reason> {
        let line = self.line()?;
        let object = match code {
            b'I' | b'L' => match line.trim_end_matches('L').parse() {
                Ok(value) => Object::Int(value),
                Err(_) => Object::Other,
            },
            b'S' | b'V' => Object::Text(line.trim_matches(['\'', '"']).into()),
            _ => Object::Other,
        };
        self.stack.push(object);
        Ok(())
    }

    /// A little-endian integer.
    fn long(&mut self, size: usize) -> Result<(), Reason> {
        let bytes = self.take(size)?;
        // A ninth byte of zero only keeps a number positive.
        let bytes = bytes
            .strip_suffix(&[0])
            .filter(|_| size == 9)
            .unwrap_or(bytes);
        let size = bytes.len();
        let object = if size > 8 || (size == 8 && bytes[7] >= 0x80) {
            Object::Other
        } else {
            let fill = if bytes.last().is_some_and(|last| *last >= 0x80) {
                0xff
            } else {
                0
            };
            let mut all = [fill; 8];
            all[..size].copy_from_slice(bytes);
            Object::Int(i64::from_le_bytes(all))
        };
        self.stack.push(object);
        Ok(())
    }

    fn unicode(&mut self, width: usize) -> Result<(), Reason> {
        let size = self.size(width)?;
        let text = String::from_utf8_lossy(self.take(size)?).into_owned();
        self.stack.push(Object::Text(text.into()));
        Ok(())
    }

    fn skipped(&mut self, width: usize) -> Result<(), Reason> {
        let size = self.size(width)?;
        self.take(size)?;
        self.stack.push(Object::Other);
        Ok(())
    }

    fn size(&mut self, width: usize) -> Result<usize, Reason> {
        let mut all = [0; 8];
        all[..width].copy_from_slice(self.take(width)?);
        usize::try_from(u64::from_le_bytes(all)).map_err(|_| short())
    }

    fn take(&mut self, num: usize) -> Result<&'a [u8], Reason> {
        let (taken, rest) = self.rest.split_at_checked(num).ok_or_else(short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Reason> {
        self.take(N)?.try_into().map_err(|_| short())
    }

    fn line(&mut self) -> Result<&'a str, Reason> {
        let end = self
            .rest
            .iter()
            .position(|byte| *byte == b'\n')
            .ok_or_else(short)?;
        let line = self.take(end)?;
        self.take(1)?;
        std::str::from_utf8(line).map_err(|_| damaged())
    }

    fn pop(&mut self) -> Result<Object, Reason> {
        self.stack.pop().ok_or_else(short)
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Object>, Reason> {
        let mark = self.marks.pop().filter(|mark| *mark <= self.stack.len());
        Ok(self.stack.split_off(mark.ok_or_else(damaged)?))
    }
}

fn pairs(items: Vec<Object>) -> Result<Vec<(Object, Object)>, Reason> {
    if items.len() % 2 == 1 {
        return Err(damaged());
    }
    let mut items = items.into_iter();
    let mut pairs = Vec::with_capacity(items.len() / 2);
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        pairs.push((key, value));
    }
    Ok(pairs)
}

fn short() -> Reason {
    "its pickle is truncated".into()
}

pub(super) fn damaged() -> Reason {
    "its pickle is not one of `torch.save`".into()
}

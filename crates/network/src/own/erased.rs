//! A module of an unknown type.
//!
//! The methods of visitors and mappers are generic over the rank of a tensor. Between two of them, a parameter travels
//! as `dyn Any` with its rank.

use std::any::Any;
use std::fmt::Debug;

use burn::module::{Flag, Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Bool, Device, Int, Tensor};

use super::LayerPart;
use crate::tensor::DynTensor;

/// A [`LayerPart`] whose type is erased.
pub trait Erased: Debug + Send + Sync {
    fn clone_erased(&self) -> Box<dyn Erased>;
    fn forward(&self, inputs: Vec<DynTensor>) -> DynTensor;
    fn collect_devices(&self, devices: Vec<Device>) -> Vec<Device>;
    fn fork(self: Box<Self>, device: &Device) -> Box<dyn Erased>;
    fn to_device(self: Box<Self>, device: &Device) -> Box<dyn Erased>;
    fn train(self: Box<Self>) -> Box<dyn Erased>;
    fn valid(&self) -> Box<dyn Erased>;
    fn materialize(self: Box<Self>) -> Box<dyn Erased>;
    fn visit(&self, visitor: &mut dyn Visit);
    fn map(self: Box<Self>, mapper: &mut dyn Map) -> Box<dyn Erased>;
}

impl<L: LayerPart> Erased for L {
    fn clone_erased(&self) -> Box<dyn Erased> {
        Box::new(self.clone())
    }

    fn forward(&self, inputs: Vec<DynTensor>) -> DynTensor {
        LayerPart::forward(self, inputs)
    }

    fn collect_devices(&self, devices: Vec<Device>) -> Vec<Device> {
        Module::collect_devices(self, devices)
    }

    fn fork(self: Box<Self>, device: &Device) -> Box<dyn Erased> {
        Box::new(Module::fork(*self, device))
    }

    fn to_device(self: Box<Self>, device: &Device) -> Box<dyn Erased> {
        Box::new(Module::to_device(*self, device))
    }

    fn train(self: Box<Self>) -> Box<dyn Erased> {
        Box::new(Module::train(*self))
    }

    fn valid(&self) -> Box<dyn Erased> {
        Box::new(Module::valid(self))
    }

    fn materialize(self: Box<Self>) -> Box<dyn Erased> {
        Box::new(Module::materialize(*self))
    }

    fn visit(&self, visitor: &mut dyn Visit) {
        Module::visit(self, &mut Visitor(visitor));
    }

    fn map(self: Box<Self>, mapper: &mut dyn Map) -> Box<dyn Erased> {
        Box::new(Module::map(*self, &mut Mapper(mapper)))
    }
}

/// Calls a method with the constant rank that a number says.
macro_rules! with_rank {
    ($rank:expr, $constant:ident => $call:expr) => {
        with_rank!(@arms $rank, $constant => $call, 1 2 3 4 5 6 7 8)
    };
    (@arms $rank:expr, $constant:ident => $call:expr, $($number:literal)+) => {
        match $rank {
            $($number => {
                const $constant: usize = $number;
                $call
            })+
            rank => panic!("parameters have 1 to 8 dimensions, found {rank}"),
        }
    };
}

/// The parameter behind an `Any`, whose rank travels with it.
fn of<P: 'static>(param: &dyn Any) -> &P {
    param.downcast_ref().expect("the rank travels with it")
}

fn owned<P: 'static>(param: Box<dyn Any>) -> P {
    *param.downcast().expect("the rank travels with it")
}

/// A visitor whose type is erased.
pub trait Visit {
    fn enter(&mut self, name: &str, container: &str);
    fn exit(&mut self, name: &str, container: &str);
    fn float(&mut self, param: &dyn Any, rank: usize);
    fn int(&mut self, param: &dyn Any, rank: usize);
    fn bool(&mut self, param: &dyn Any, rank: usize);
    fn flag(&mut self, flag: &Param<Flag>);
}

impl<V: ModuleVisitor> Visit for V {
    fn enter(&mut self, name: &str, container: &str) {
        self.enter_module(name, container);
    }

    fn exit(&mut self, name: &str, container: &str) {
        self.exit_module(name, container);
    }

    fn float(&mut self, param: &dyn Any, rank: usize) {
        with_rank!(rank, D => self.visit_float(of::<Param<Tensor<D>>>(param)));
    }

    fn int(&mut self, param: &dyn Any, rank: usize) {
        with_rank!(rank, D => self.visit_int(of::<Param<Tensor<D, Int>>>(param)));
    }

    fn bool(&mut self, param: &dyn Any, rank: usize) {
        with_rank!(rank, D => self.visit_bool(of::<Param<Tensor<D, Bool>>>(param)));
    }

    fn flag(&mut self, flag: &Param<Flag>) {
        self.visit_flag(flag);
    }
}

struct Visitor<'a>(&'a mut dyn Visit);

impl ModuleVisitor for Visitor<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.0.enter(name, container);
    }

    fn exit_module(&mut self, name: &str, container: &str) {
        self.0.exit(name, container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.float(param, D);
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.0.int(param, D);
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.0.bool(param, D);
    }

    fn visit_flag(&mut self, flag: &Param<Flag>) {
        self.0.flag(flag);
    }
}

/// A mapper whose type is erased.
pub trait Map {
    fn enter(&mut self, name: &str, container: &str);
    fn exit(&mut self, name: &str, container: &str);
    fn float(&mut self, param: Box<dyn Any>, rank: usize) -> Box<dyn Any>;
    fn int(&mut self, param: Box<dyn Any>, rank: usize) -> Box<dyn Any>;
    fn bool(&mut self, param: Box<dyn Any>, rank: usize) -> Box<dyn Any>;
    fn flag(&mut self, flag: Param<Flag>) -> Param<Flag>;
}

impl<M: ModuleMapper> Map for M {
    fn enter(&mut self, name: &str, container: &str) {
        self.enter_module(name, container);
    }

    fn exit(&mut self, name: &str, container: &str) {
        self.exit_module(name, container);
    }

    fn float(&mut self, param: Box<dyn Any>, rank: usize) -> Box<dyn Any> {
        with_rank!(rank, D => Box::new(self.map_float(owned::<Param<Tensor<D>>>(param))))
    }

    fn int(&mut self, param: Box<dyn Any>, rank: usize) -> Box<dyn Any> {
        with_rank!(rank, D => Box::new(self.map_int(owned::<Param<Tensor<D, Int>>>(param))))
    }

    fn bool(&mut self, param: Box<dyn Any>, rank: usize) -> Box<dyn Any> {
        with_rank!(rank, D => Box::new(self.map_bool(owned::<Param<Tensor<D, Bool>>>(param))))
    }

    fn flag(&mut self, flag: Param<Flag>) -> Param<Flag> {
        self.map_flag(flag)
    }
}

struct Mapper<'a>(&'a mut dyn Map);

impl ModuleMapper for Mapper<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.0.enter(name, container);
    }

    fn exit_module(&mut self, name: &str, container: &str) {
        self.0.exit(name, container);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        owned(self.0.float(Box::new(param), D))
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        owned(self.0.int(Box::new(param), D))
    }

    fn map_bool<const D: usize>(
        &mut self,
        param: Param<Tensor<D, Bool>>,
    ) -> Param<Tensor<D, Bool>> {
        owned(self.0.bool(Box::new(param), D))
    }

    fn map_flag(&mut self, flag: Param<Flag>) -> Param<Flag> {
        self.0.flag(flag)
    }
}

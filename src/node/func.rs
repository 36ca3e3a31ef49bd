//! The closures that operators take.
//!
//! A closure may return a borrow of its argument. `for<'a> Fn(V::View<'a>) -> W::Out<'a>` is refused by the compiler
//! (E0582); the same as a trait's *arguments* is not, and closures are still inferred through the `Fn` supertrait.

/// Any error that user code may answer.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A shared function of one argument. Implemented for closures, never by hand.
pub trait Fn1<A, R>: Fn(A) -> R + Send + Sync + 'static {}
impl<F: Fn(A) -> R + Send + Sync + 'static, A, R> Fn1<A, R> for F {}

/// A shared function of two arguments. Implemented for closures, never by hand.
pub trait Fn2<A, B, R>: Fn(A, B) -> R + Send + Sync + 'static {}
impl<F: Fn(A, B) -> R + Send + Sync + 'static, A, B, R> Fn2<A, B, R> for F {}

/// A shared function of three arguments. Implemented for closures, never by hand.
pub trait Fn3<A, B, C, R>: Fn(A, B, C) -> R + Send + Sync + 'static {}
impl<F: Fn(A, B, C) -> R + Send + Sync + 'static, A, B, C, R> Fn3<A, B, C, R> for F {}

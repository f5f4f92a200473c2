//! hyper's tasks as tasks of the engine.

use hyper::rt::Executor;

/// Runs hyper's futures as tasks of the current runtime. HTTP/1 needs none.
///
/// A future that the runtime refuses is dropped, and HTTP/2 then resets its stream: at the limit of tasks, outside a
/// runtime, and on the blocking driver, which has one task.
///
/// ```
/// use hyper::rt::Executor;
/// use weir_engine::{Config, Driver, Runtime, sync::oneshot};
/// use weir_engine_adapters::EngineExecutor;
///
/// let runtime = Runtime::new(&Config::with_driver(Driver::Sim)).unwrap();
/// let answer = runtime.block_on(async {
///     let (sender, receiver) = oneshot();
///     EngineExecutor.execute(async move { sender.send(7) });
///     receiver.await
/// });
/// assert_eq!(answer, Ok(7));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineExecutor;

impl<F> Executor<F> for EngineExecutor
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        // The handle is not needed, and the documentation says what a refusal does.
        drop(weir_engine::try_spawn(future));
    }
}

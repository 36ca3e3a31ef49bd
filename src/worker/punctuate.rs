//! Processors of a thread's tasks: made when a task begins, called when their time has come.
//!
//! Invariant: a task's processors are made when its stores are complete and before its first record. Bound: a closure
//! is called once a turn. Called by the turn.
use super::failure::RunError;
use super::stream::StreamThread;
use super::turn::panic_text;
use crate::base::id::TaskId;
use crate::node::{Cx, Fault, PunctuationType, Wired};
use crate::task::step::Phase;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

impl StreamThread {
    /// A task whose stores are complete begins.
    pub(super) fn begin(&mut self, index: usize) -> Result<(), RunError> {
        let id = self.tasks[index].id;
        let Some(wired) = self.wired_of(id) else { return Ok(()) };
        let stream_time = self.tasks[index].group.stream_time();
        let opened = self.guarded(id, stream_time, |cx| wired.opened(cx).map(|()| false));
        match opened {
            Ok(_) => {
                self.open_inputs(index);
                Ok(())
            }
            Err(error) => self.fail_task(id, error),
        }
    }

    /// Calls what is due, by the task's own time and by the clock's.
    pub(super) fn punctuate_all(&mut self) -> Result<(), RunError> {
        if !self.wired.iter().flatten().any(|wired| wired.timers().is_used()) {
            return Ok(());
        }
        let wall = self.shared.clock.wall_ms();
        let mut index = 0;
        while index < self.tasks.len() {
            let (id, stream) = (self.tasks[index].id, self.tasks[index].group.stream_time());
            index += 1;
            if self.tasks[index - 1].phase != Phase::Running {
                continue;
            }
            let called = match self.punctuate(id, PunctuationType::StreamTime, stream, stream) {
                Ok(()) => self.punctuate(id, PunctuationType::WallClock, wall, stream),
                failed => failed,
            };
            if let Err(error) = called {
                self.fail_task(id, error)?;
                index -= 1;
            }
        }
        Ok(())
    }

    fn punctuate(&mut self, id: TaskId, by: PunctuationType, now: i64, stream: i64) -> Result<(), RunError> {
        let Some(wired) = self.wired_of(id) else { return Ok(()) };
        while self.guarded(id, stream, |cx| wired.punctuate_one(cx, by, now))? {
            if let Some(index) = self.task_index(id) {
                self.tasks[index].touch();
            }
            self.arena.reset();
        }
        Ok(())
    }

    /// Milliseconds until the wall clock calls a closure of a task that processes.
    pub(super) fn punctuation_in(&self) -> i64 {
        let running = self.tasks.iter().filter(|task| task.phase == Phase::Running).map(|task| task.id);
        let next = |id: TaskId| self.wired_of(id)?.timers().next(id.partition, PunctuationType::WallClock);
        let at = running.filter_map(next).min();
        at.map_or(i64::MAX, |at| (at - self.shared.clock.wall_ms()).max(0))
    }

    /// Whether a processor asked for a commit since the last call.
    pub(super) fn is_commit_asked(&self) -> bool {
        self.wired.iter().flatten().filter(|wired| wired.timers().take_commit_request()).count() > 0
    }

    fn wired_of(&self, id: TaskId) -> Option<Rc<Wired>> {
        self.wired.get(id.subtopology as usize).cloned().flatten()
    }

    /// Runs user code of a task that no record caused; a fault or a panic is told in words.
    fn guarded(
        &self,
        id: TaskId,
        stream_time: i64,
        work: impl FnOnce(&Cx<'_>) -> Result<bool, Fault>,
    ) -> Result<bool, RunError> {
        let mut cx = Cx::idle(&self.arena, id, &self.port, &self.fault, self.shared.clock.wall_ms());
        cx.stream_time = stream_time;
        match catch_unwind(AssertUnwindSafe(|| work(&cx))) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(fault)) => {
                let (parked, _) = self.fault.take();
                Err(self.describe(id, fault, parked, "a punctuation".to_owned()))
            }
            Err(panic) => Err(RunError::Panicked { task: id, reason: panic_text(panic.as_ref()) }),
        }
    }
}

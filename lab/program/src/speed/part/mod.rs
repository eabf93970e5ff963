// SPDX-License-Identifier: Apache-2.0
//! A process for each way to do the same job: the raw library, this module with lanes and without, a
//! rival. A module reads its configuration once in a process, so each way has one of its own, and its
//! CPU time is its own as well.

mod crew;
mod job;
mod raw;
mod request;
mod scenario;
mod serving;
mod signs;
mod team;
mod token;
mod usual;
mod worker;

pub(crate) use crew::{
    AGAIN, ARM, BY, Crew, LANES, MODULE, ONLY_LANES, ONLY_OPENSSL, RAW, RIVAL, ROUTED,
};
pub(crate) use job::{Function, Hashing, Job, Key, Parameter, Work};
pub(crate) use request::Listed;
pub(crate) use scenario::{Jobs, Plan};
pub(crate) use serving::Part;
pub(crate) use worker::Worker;

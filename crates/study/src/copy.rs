// SPDX-License-Identifier: Apache-2.0
//! Copies of memory.

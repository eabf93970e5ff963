// SPDX-License-Identifier: Apache-2.0
//! The curves by name, and the way from a name to code made for its field and for this processor.

#[cfg(target_arch = "x86_64")]
use super::clmul::Clmul;
use super::field::{F163, F233, F283, F409, F571, Field};
use super::form::Form;
use super::params::Params;
use super::point::{Coded, Points};
use super::single::{Portable, Single};
use super::table;
#[cfg(target_arch = "x86_64")]
use super::vpclmul::Vector;

/// A curve over GF(2^m) of SEC 2.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Curve {
    /// K-163.
    Sect163k1,
    /// Of SEC 2 alone.
    Sect163r1,
    /// B-163.
    Sect163r2,
    /// K-233.
    Sect233k1,
    /// B-233.
    Sect233r1,
    /// K-283.
    Sect283k1,
    /// B-283.
    Sect283r1,
    /// K-409.
    Sect409k1,
    /// B-409.
    Sect409r1,
    /// K-571.
    Sect571k1,
    /// B-571.
    Sect571r1,
}

/// What callers want to know: the name, the encoded object identifier, m, the bits of the order.
struct Facts(&'static str, [u8; 7], usize, usize);

/// In the order of [`Curve::ALL`].
static FACTS: [Facts; 11] = [
    Facts("sect163k1", certicom(1), 163, 163),
    Facts("sect163r1", certicom(2), 163, 162),
    Facts("sect163r2", certicom(15), 163, 163),
    Facts("sect233k1", certicom(26), 233, 232),
    Facts("sect233r1", certicom(27), 233, 233),
    Facts("sect283k1", certicom(16), 283, 281),
    Facts("sect283r1", certicom(17), 283, 282),
    Facts("sect409k1", certicom(36), 409, 407),
    Facts("sect409r1", certicom(37), 409, 409),
    Facts("sect571k1", certicom(38), 571, 570),
    Facts("sect571r1", certicom(39), 571, 570),
];

/// 1.3.132.0.`last`
const fn certicom(last: u8) -> [u8; 7] {
    [0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, last]
}

impl Curve {
    /// Every one.
    pub const ALL: [Self; 11] = [
        Self::Sect163k1,
        Self::Sect163r1,
        Self::Sect163r2,
        Self::Sect233k1,
        Self::Sect233r1,
        Self::Sect283k1,
        Self::Sect283r1,
        Self::Sect409k1,
        Self::Sect409r1,
        Self::Sect571k1,
        Self::Sect571r1,
    ];

    const fn facts(self) -> &'static Facts {
        &FACTS[self as usize]
    }

    /// Its name in SEC 2.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().0
    }

    /// Its object identifier in DER: a whole `CKA_EC_PARAMS`.
    #[must_use]
    pub const fn oid(self) -> &'static [u8] {
        &self.facts().1
    }

    /// m.
    #[must_use]
    pub const fn degree(self) -> usize {
        self.facts().2
    }

    /// The bits of the base point's order.
    #[must_use]
    pub const fn order_bits(self) -> usize {
        self.facts().3
    }

    /// The bytes of a coordinate and of a shared secret.
    #[must_use]
    pub const fn field_length(self) -> usize {
        self.degree().div_ceil(8)
    }

    /// The bytes of a private key and of each half of a signature.
    #[must_use]
    pub const fn order_length(self) -> usize {
        self.order_bits().div_ceil(8)
    }

    /// The curve of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|curve| curve.name() == name)
    }

    /// The curve of that `CKA_EC_PARAMS`.
    #[must_use]
    pub fn from_oid(der: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|curve| curve.oid() == der)
    }
}

/// Which code computes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    #[cfg(target_arch = "x86_64")]
    Vector(Vector),
    #[cfg(target_arch = "x86_64")]
    Clmul(Clmul),
    Portable,
}

impl Kind {
    /// Those that this processor can run, the fastest first.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let vector = Vector::detect().map(Self::Vector);
        vector.into_iter().chain(Clmul::detect().map(Self::Clmul)).chain([Self::Portable])
    }

    /// Those that this processor can run, the fastest first.
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn all() -> impl Iterator<Item = Self> {
        [Self::Portable].into_iter()
    }

    pub(super) fn best() -> Self {
        Self::all().next().unwrap_or(Self::Portable)
    }
}

/// Something to compute on one curve, with code of its own for each field and each form.
pub(super) trait Task {
    type Answer;

    fn run<A: Form<F, W>, F: Field<W>, const W: usize>(
        self,
        form: A,
        curve: &'static Params<W>,
    ) -> Self::Answer;
}

/// Something to compute on one curve with what [`Points`] offers, so that its code is there once for each number of words.
pub(super) trait Work {
    type Answer;

    fn run<const W: usize>(self, points: &dyn Points<W>, curve: &'static Params<W>)
    -> Self::Answer;
}

/// Does a work with the code for that curve.
pub(super) fn work<T: Work>(curve: Curve, kind: Kind, work: T) -> T::Answer {
    on(curve, kind, Called(work))
}

struct Called<T>(T);

impl<T: Work> Task for Called<T> {
    type Answer = T::Answer;

    fn run<A: Form<F, W>, F: Field<W>, const W: usize>(
        self,
        form: A,
        curve: &'static Params<W>,
    ) -> T::Answer {
        call(self.0, &Coded::new(form), curve)
    }
}

/// Not inlined, or there would be one for each form and curve.
#[inline(never)]
fn call<T: Work, const W: usize>(
    work: T,
    points: &dyn Points<W>,
    curve: &'static Params<W>,
) -> T::Answer {
    work.run(points, curve)
}

/// Runs a task with the code for that curve.
pub(super) fn on<T: Task>(curve: Curve, kind: Kind, task: T) -> T::Answer {
    match curve {
        Curve::Sect163k1 => with::<T, F163, 3>(kind, task, &table::SECT163K1),
        Curve::Sect163r1 => with::<T, F163, 3>(kind, task, &table::SECT163R1),
        Curve::Sect163r2 => with::<T, F163, 3>(kind, task, &table::SECT163R2),
        Curve::Sect233k1 => with::<T, F233, 4>(kind, task, &table::SECT233K1),
        Curve::Sect233r1 => with::<T, F233, 4>(kind, task, &table::SECT233R1),
        Curve::Sect283k1 => with::<T, F283, 5>(kind, task, &table::SECT283K1),
        Curve::Sect283r1 => with::<T, F283, 5>(kind, task, &table::SECT283R1),
        Curve::Sect409k1 => with::<T, F409, 7>(kind, task, &table::SECT409K1),
        Curve::Sect409r1 => with::<T, F409, 7>(kind, task, &table::SECT409R1),
        Curve::Sect571k1 => with::<T, F571, 9>(kind, task, &table::SECT571K1),
        Curve::Sect571r1 => with::<T, F571, 9>(kind, task, &table::SECT571R1),
    }
}

fn with<T: Task, F: Field<W>, const W: usize>(
    kind: Kind,
    task: T,
    curve: &'static Params<W>,
) -> T::Answer {
    match kind {
        #[cfg(target_arch = "x86_64")]
        Kind::Vector(form) => task.run::<_, F, W>(form, curve),
        #[cfg(target_arch = "x86_64")]
        Kind::Clmul(form) => task.run::<_, F, W>(Single(form), curve),
        Kind::Portable => task.run::<_, F, W>(Single(Portable), curve),
    }
}

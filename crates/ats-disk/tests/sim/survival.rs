//! Survival of a stop of the machine.

use super::action::{Action, Fate, Pending, SECTOR};
use super::disk::Disk;
use super::random::Random;

/// The part of all that was pending that survives a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Survival {
    /// The machine goes on, only the process has ended: pending actions stay pending.
    Process,
    Nothing,
    Everything,
    /// All but this action.
    Without(usize),
    /// Survival of this action alone.
    Only(usize),
    /// The actions up to this one, which is the first that is lost.
    First(usize),
    /// All but the changes of the content of the file of this action.
    WithoutFile(usize),
    /// Only the changes of the content of the file of this action, and all names.
    OnlyFile(usize),
    /// All, but of this write only the first bytes; with `grown` the length is as if all were
    /// written.
    Torn {
        write: usize,
        bytes: u32,
        grown: bool,
    },
    /// The files that names lead to, but no content.
    Names,
    /// Names and lengths: contents read as zeros.
    NamesAndLengths,
    /// Contents, but no names.
    Contents,
    /// Anything, chosen by this seed.
    Random(u64),
}

impl Survival {
    /// Returns the fate of each pending action.
    pub(crate) fn fates(self, pending: &[Pending]) -> Vec<Fate> {
        let length = Fate::Torn {
            bytes: 0,
            grown: true,
        };
        let kept = |kept| if kept { Fate::Kept } else { Fate::Lost };
        if let Survival::Random(seed) = self {
            return random(pending, Random::new(seed));
        }
        let is_content = |action: &Action, of: usize| {
            !action.is_name() && action.file() == pending[of].action.file()
        };
        let fate = |(index, pending): (usize, &Pending)| {
            let (action, is_name) = (&pending.action, pending.action.is_name());
            match self {
                Survival::Nothing => Fate::Lost,
                Survival::Without(lost) => kept(index != lost),
                Survival::Only(one) => kept(index == one),
                Survival::First(lost) => kept(index < lost),
                Survival::WithoutFile(of) => kept(!is_content(action, of)),
                Survival::OnlyFile(of) => kept(is_name || is_content(action, of)),
                Survival::Torn {
                    write,
                    bytes,
                    grown,
                } if index == write => Fate::Torn { bytes, grown },
                Survival::Torn { .. }
                | Survival::Process
                | Survival::Everything
                | Survival::Random(_) => Fate::Kept,
                Survival::Names => kept(is_name),
                Survival::NamesAndLengths if is_name => Fate::Kept,
                Survival::NamesAndLengths => length,
                Survival::Contents => kept(!is_name),
            }
        };
        pending.iter().enumerate().map(fate).collect()
    }

    /// Returns the disk after the stop.
    pub(crate) fn image(self, disk: &Disk) -> Disk {
        match self {
            Survival::Process => {
                let mut disk = disk.clone();
                disk.forget(|_| false);
                disk
            }
            _ => disk.image(&self.fates(disk.pending())),
        }
    }

    /// Returns the survivals by which a point is enumerated: all that are of use, but at most
    /// `each` of those of a kind of which there are many, and `random` random ones.
    pub(crate) fn all(disk: &Disk, each: usize, random: &mut Random) -> Vec<Survival> {
        let pending = disk.pending();
        let mut all = vec![Survival::Nothing, Survival::Process, Survival::Everything];
        if pending.is_empty() {
            all.truncate(1);
            return all;
        }
        let indexes = some(pending.len(), each, random);
        all.extend(indexes.iter().map(|&index| Survival::Without(index)));
        all.extend(indexes.iter().map(|&index| Survival::Only(index)));
        all.extend(indexes.iter().map(|&index| Survival::First(index)));
        if pending.iter().any(|pending| pending.action.is_name()) {
            all.extend([
                Survival::Names,
                Survival::NamesAndLengths,
                Survival::Contents,
            ]);
        }
        let mut files: Vec<_> = pending
            .iter()
            .map(|pending| pending.action.file())
            .collect();
        files.sort_unstable();
        files.dedup();
        for file in files {
            let mut of = pending.iter();
            let of = of.rposition(|p| !p.action.is_name() && p.action.file() == file);
            all.extend(of.map(Survival::WithoutFile));
            all.extend(of.map(Survival::OnlyFile));
        }
        let last = pending
            .iter()
            .rposition(|pending| pending.action.bytes_written().is_some());
        all.extend(
            last.into_iter()
                .flat_map(|write| tears(pending, write, each)),
        );
        all.extend((0..each / 2).map(|_| Survival::Random(random.next())));
        all
    }

    /// A few for a point that is one of many.
    pub(crate) fn few(disk: &Disk, random: &mut Random) -> Vec<Survival> {
        let pending = disk.pending();
        if pending.is_empty() {
            return vec![Survival::Nothing];
        }
        let mut few = vec![Survival::Nothing, Survival::Process];
        few.extend((0..2).map(|_| Survival::Random(random.next())));
        let last = pending
            .iter()
            .rposition(|pending| pending.action.bytes_written().is_some());
        if let Some(write) = last {
            let tears = tears(pending, write, 64);
            few.extend((!tears.is_empty()).then(|| random.pick(&tears)));
        }
        few
    }
}

/// Numbers below a bound: all, or so many random ones.
fn some(bound: usize, count: usize, random: &mut Random) -> Vec<usize> {
    if bound <= count {
        (0..bound).collect()
    } else {
        (0..count).map(|_| random.below(bound)).collect()
    }
}

/// Returns the ways to tear a write: around its ends, at sectors, and at each byte if it is small.
fn tears(pending: &[Pending], write: usize, each: usize) -> Vec<Survival> {
    let Action::Write { offset, bytes, .. } = &pending[write].action else {
        return Vec::new();
    };
    let (len, first) = (bytes.len() as u32, SECTOR as u32 - (offset % SECTOR) as u32);
    let mut at: Vec<u32> = (first..len).step_by(SECTOR as usize).collect();
    at.extend([0, 1, len - 1]);
    if len as usize <= 4 * each {
        at.extend(0..len);
    }
    at.sort_unstable();
    at.dedup();
    let tear = |bytes| {
        [false, true].map(|grown| Survival::Torn {
            write,
            bytes,
            grown,
        })
    };
    at.into_iter().flat_map(tear).collect()
}

fn random(pending: &[Pending], mut random: Random) -> Vec<Fate> {
    // The number of those kept of eight, of contents and of names.
    let (contents, names) = (random.pick(&[0, 1, 4, 7, 8]), random.pick(&[0, 1, 4, 7, 8]));
    let fate = |pending: &Pending| {
        let is_kept = random.below(8)
            < if pending.action.is_name() {
                names
            } else {
                contents
            };
        let written = pending.action.bytes_written().unwrap_or(0);
        match (random.below(16), written, is_kept) {
            (0, 0, _) => Fate::Torn {
                bytes: 0,
                grown: false,
            },
            (0 | 1, 1.., _) => Fate::Torn {
                bytes: random.below(written) as u32,
                grown: random.one_in(2),
            },
            (2, 1.., _) => Fate::Sectors(random.next()),
            (_, _, true) => Fate::Kept,
            (_, _, false) => Fate::Lost,
        }
    };
    pending.iter().map(fate).collect()
}

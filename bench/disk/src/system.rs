//! Facts that the system tells about this process and its files.

use crate::engine::Outcome;
use std::fs;
use std::path::Path;

/// Bytes of memory that are resident now, and the most that were since [`forget_peak`].
#[derive(Clone, Copy, Default)]
pub struct Memory {
    /// Now.
    pub resident: u64,
    /// At most.
    pub peak: u64,
}

/// Returns the memory of this process.
///
/// # Errors
/// If the system does not say.
pub fn memory() -> Outcome<Memory> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kilobytes = |name| number_after(&status, name).ok_or("no memory in /proc/self/status");
    Ok(Memory {
        resident: kilobytes("VmRSS:")? << 10,
        peak: kilobytes("VmHWM:")? << 10,
    })
}

/// Lets [`Memory::peak`] begin anew.
///
/// # Errors
/// If the system does not.
pub fn forget_peak() -> Outcome<()> {
    Ok(fs::write("/proc/self/clear_refs", "5")?)
}

/// Bytes that this process has caused to be written to a device so far, including those that the
/// system has not written yet.
///
/// # Errors
/// If the system does not say.
pub fn bytes_written() -> Outcome<u64> {
    let io = fs::read_to_string("/proc/self/io")?;
    number_after(&io, "\nwrite_bytes:").ok_or_else(|| "no write_bytes in /proc/self/io".into())
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    let (_, rest) = text.split_once(name)?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Bytes that the files of a folder take on the device.
///
/// # Errors
/// If they cannot be looked at. A file that is removed meanwhile takes none.
pub fn size_of(folder: &Path) -> Outcome<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += size_of(&entry.path())?,
            Ok(metadata) => bytes += metadata.blocks() * 512,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// Has the system write everything that it has not written yet.
pub fn write_back() {
    // SAFETY: `sync` has no conditions.
    unsafe { libc::sync() };
}

/// Returns the way in which [`forget_files`] empties the caches of the system.
pub fn forgetting_method() -> &'static str {
    match fs::write("/proc/sys/vm/drop_caches", "1") {
        Ok(()) => "drop_caches",
        Err(_) => "posix_fadvise",
    }
}

/// Makes the system forget the cached files of a folder: drops all caches if this process may, else
/// those of the files. The cache of a hypervisor stays, and the program itself is not forgotten.
///
/// # Errors
/// If there are files that it cannot be asked to forget.
pub fn forget_files(folder: &Path) -> Outcome<()> {
    write_back();
    if fs::write("/proc/sys/vm/drop_caches", "3").is_ok() {
        let mut program = fs::File::open("/proc/self/exe")?;
        std::io::copy(&mut program, &mut std::io::sink())?;
        return Ok(());
    }
    each_file(folder, &mut |path| {
        use std::os::fd::AsRawFd;
        let file = fs::File::open(path)?;
        // SAFETY: the descriptor is that of `file`, which is open.
        let code =
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        match code {
            0 => Ok(()),
            code => Err(std::io::Error::from_raw_os_error(code).into()),
        }
    })
}

/// Makes the system cache the files of a folder.
///
/// # Errors
/// If they cannot be read.
pub fn read_files(folder: &Path) -> Outcome<()> {
    each_file(folder, &mut |path| {
        std::io::copy(&mut fs::File::open(path)?, &mut std::io::sink())?;
        Ok(())
    })
}

fn each_file(folder: &Path, work: &mut dyn FnMut(&Path) -> Outcome<()>) -> Outcome<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            each_file(&path, work)?
        } else {
            work(&path)?
        }
    }
    Ok(())
}

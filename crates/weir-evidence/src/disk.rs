//! Which disk a file lies on, and how the operating system calls itself. What is not known stays empty.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::fs::{major, minor};
use weir_record::sweep::DiskFacts;

use crate::files;

/// Unit of the size that the kernel tells of a disk, whatever its blocks are.
const SECTOR_BYTES: u64 = 512;

/// `Debian GNU/Linux 12 (bookworm)`; empty where the system does not say.
pub fn operating_system() -> String {
    let texts = ["/etc/os-release", "/usr/lib/os-release"].into_iter().filter_map(files::read_text);
    texts.filter_map(|text| pretty_name(&text)).next().unwrap_or_default()
}

/// The name in a text of `os-release(5)`.
fn pretty_name(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix("PRETTY_NAME="))?;
    let name = value.trim_matches(['"', '\'']).trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// The whole disk below a file, or that a block device is or belongs to. `None` where no such disk is known (a file
/// system in memory, over a network, or over several disks).
pub fn below(path: &Path) -> Option<DiskFacts> {
    let metadata = fs::metadata(path).ok()?;
    // A device's own number is in `rdev`; that of a regular file is 0.
    let number = if metadata.rdev() == 0 { metadata.dev() } else { metadata.rdev() };
    facts(Path::new("/sys/dev/block"), &format!("{}:{}", major(number), minor(number)))
}

fn facts(devices: &Path, number: &str) -> Option<DiskFacts> {
    let node = fs::canonicalize(devices.join(number)).ok()?;
    // The directory of a partition lies in that of its disk.
    let disk = if node.join("partition").exists() { node.parent()?.to_owned() } else { node };
    let sectors: u64 = files::read_value(disk.join("size"))?.parse().ok()?;
    let driver: Option<PathBuf> = fs::canonicalize(disk.join("device/driver")).ok();
    Some(DiskFacts {
        name: disk.file_name()?.to_string_lossy().into_owned(),
        model: files::read_value(disk.join("device/model")),
        driver: driver.and_then(|driver| Some(driver.file_name()?.to_string_lossy().into_owned())),
        bytes: sectors.saturating_mul(SECTOR_BYTES),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder of its own, removed at the end.
    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_partition_is_told_as_the_disk_it_is_on() {
        let folder = Folder(std::env::temp_dir().join(format!("weir-disk-{}", std::process::id())));
        let root = &folder.0;
        let (disk, part) = (root.join("block/nvme0n1"), root.join("block/nvme0n1/nvme0n1p2"));
        for made in [&part, &disk.join("device"), &root.join("drivers/nvme"), &root.join("dev")] {
            fs::create_dir_all(made).expect("a folder");
        }
        for (file, text) in [
            (disk.join("size"), "937703088\n"),
            (disk.join("device/model"), "SAMSUNG MZ1JB480   \n"),
            (part.join("partition"), "2\n"),
            (part.join("size"), "2048\n"),
        ] {
            fs::write(file, text).expect("a file");
        }
        symlink(root.join("drivers/nvme"), disk.join("device/driver")).expect("a link");
        symlink(&part, root.join("dev/259:2")).expect("a link");
        let expected = DiskFacts {
            name: "nvme0n1".to_owned(),
            model: Some("SAMSUNG MZ1JB480".to_owned()),
            driver: Some("nvme".to_owned()),
            bytes: 480_103_981_056,
        };
        assert_eq!(facts(&root.join("dev"), "259:2"), Some(expected));
        assert_eq!(facts(&root.join("dev"), "0:44"), None);
    }

    #[test]
    fn a_file_without_a_disk_has_none() {
        assert_eq!(below(Path::new("/proc/self/stat")), None);
        assert_eq!(below(Path::new("/nowhere/at/all")), None);
    }

    #[test]
    fn the_system_is_called_as_it_calls_itself() {
        let text = "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\n";
        assert_eq!(pretty_name(text).as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(pretty_name("PRETTY_NAME='Arch Linux'").as_deref(), Some("Arch Linux"));
        assert_eq!((pretty_name("PRETTY_NAME=\"\"\n"), pretty_name("NAME=x\n")), (None, None));
    }
}

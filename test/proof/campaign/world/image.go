package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// image is a separate file system for the data of a server, in a file. It can lose its power, and
// it can be full.
type image struct {
	file  string
	mount string // the mount point
}

func newImage(ctx context.Context, file, mount string, size int64) (*image, error) {
	f, err := os.Create(file)
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Close())
	}
	if err == nil {
		err = os.MkdirAll(mount, 0o755)
	}
	if err != nil {
		return nil, err
	}
	i := &image{file, mount}
	// Reserve no blocks for root; otherwise the file that root writes to fill it would use them
	// too.
	if err := command(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-N", "100000", "-E", "lazy_itable_init=0,nodiscard", file); err != nil {
		return nil, err
	}
	return i, i.attach(ctx)
}

func (i *image) attach(ctx context.Context) error {
	return command(ctx, "mount", "-o", "loop,noatime", i.file, i.mount)
}

// From linux/fs.h and fs/ext4/ext4.h.
const (
	ioctlShutdown = 0x8004587d // EXT4_IOC_SHUTDOWN, _IOR('X', 125, __u32)
	noLogFlush    = 2          // nothing more reaches the device, including the journal
)

// losePower stops all writes to the disk, as if the machine were off: unsynced writes are lost.
// Users of the file system get errors, until [image.restorePower].
func (i *image) losePower() error {
	f, err := os.Open(i.mount)
	if err != nil {
		return err
	}
	defer f.Close()
	flag := uint32(noLogFlush)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), ioctlShutdown, uintptr(unsafe.Pointer(&flag))); errno != 0 {
		return fmt.Errorf("shutting the file system of %s down: %w", i.mount, errno)
	}
	return nil
}

// restorePower mounts what had reached the disk. The old file system must be unused.
func (i *image) restorePower(ctx context.Context) error {
	if err := unmount(ctx, i.mount); err != nil {
		return err
	}
	return i.attach(ctx)
}

const filler = "filler"

// fill uses up all remaining space.
func (i *image) fill() error {
	f, err := os.Create(filepath.Join(i.mount, filler))
	if err != nil {
		return err
	}
	defer f.Close()
	var size int64
	for step := int64(1 << 30); step >= 4096; step /= 2 {
		for {
			err := syscall.Fallocate(int(f.Fd()), 0, size, step)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil && !errors.Is(err, syscall.ENOSPC) {
				return fmt.Errorf("filling %s: %w", i.mount, err)
			}
			if err != nil {
				break
			}
			size += step
		}
	}
	return nil
}

func (i *image) free() error {
	err := os.Remove(filepath.Join(i.mount, filler))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// unmount does nothing if nothing is mounted.
func unmount(ctx context.Context, dir string) error {
	return within(ctx, 20*time.Second, 50*time.Millisecond, func() error {
		mounted, err := isMounted(dir)
		if err != nil || !mounted {
			return err
		}
		return command(ctx, "umount", dir) // busy for a moment after its users have died
	})
}

func isMounted(dir string) (bool, error) {
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[1] == dir {
			return true, nil
		}
	}
	return false, nil
}

func command(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

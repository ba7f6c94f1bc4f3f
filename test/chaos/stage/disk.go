package stage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// A Disk is what a sidecar keeps on a disk of its own.
type Disk string

// The disks.
const (
	StateDisk Disk = "state" // what leases outlive the sidecar by
	AuditDisk Disk = "audit" // the audit log
)

// diskSize is that of a sidecar's own disk.
const diskSize = 16 << 20

func (h *Host) disk() string { return filepath.Join(h.directory, "disk") }

// stateDirectory is where the sidecar keeps what leases outlive it by.
func (h *Host) stateDirectory() string {
	if h.stage.options.Disk == StateDisk {
		return filepath.Join(h.disk(), "state")
	}
	return filepath.Join(h.directory, "state")
}

// auditLog is where the sidecar writes its audit log, if that has a disk of its own.
func (h *Host) auditLog() string { return filepath.Join(h.disk(), "audit.log") }

// mountDisk gives the sidecar a disk of its own, which takes root.
func (h *Host) mountDisk() error {
	image := h.disk() + ".image"
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, diskSize), os.Mkdir(h.disk(), 0o700)); err != nil {
		return err
	}
	return errors.Join(run("mkfs.ext4", "-q", image), run("mount", "-o", "loop", image, h.disk()))
}

func (h *Host) unmountDisk() {
	_ = h.ThawDisk() // it may not be frozen
	_ = run("umount", "--lazy", h.disk())
}

// FreezeDisk has all that is written to the sidecar's disk wait until ThawDisk.
func (h *Host) FreezeDisk() error { return run("fsfreeze", "--freeze", h.disk()) }

// ThawDisk ends FreezeDisk.
func (h *Host) ThawDisk() error { return run("fsfreeze", "--unfreeze", h.disk()) }

func (h *Host) filler() string { return filepath.Join(h.disk(), "filler") }

var errRoom = errors.New("the disk takes more than its size")

// FillDisk leaves no room on the sidecar's disk until EmptyDisk.
func (h *Host) FillDisk() error {
	err := os.WriteFile(h.filler(), make([]byte, diskSize), 0o600)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return nil
	case err == nil:
		return errRoom
	}
	return err
}

// EmptyDisk ends FillDisk. It empties the audit log, too, or that would fill the disk by itself in time.
func (h *Host) EmptyDisk() error {
	return errors.Join(os.Remove(h.filler()), os.Truncate(h.auditLog(), 0))
}

func run(command ...string) error {
	if said, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", command[0], err, said)
	}
	return nil
}

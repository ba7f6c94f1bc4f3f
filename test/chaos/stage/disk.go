package stage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// diskSize is that of the disk on which a sidecar keeps what leases outlive it by, where Options say so.
const diskSize = 16 << 20

func (h *Host) disk() string { return filepath.Join(h.directory, "disk") }

// stateDirectory is where the sidecar keeps what leases outlive it by.
func (h *Host) stateDirectory() string {
	if h.stage.options.Disks {
		return filepath.Join(h.disk(), "state")
	}
	return filepath.Join(h.directory, "state")
}

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

func run(command ...string) error {
	if said, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", command[0], err, said)
	}
	return nil
}

package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// byProgram has members share by a way of ours, each in a process of its own: this program once more.
func byProgram(way string, on *sidecar, items int) func(context.Context, string, *workBook) (func(kill bool), error) {
	return func(ctx context.Context, member string, of *workBook) (func(kill bool), error) {
		about, err := json.Marshal(sharer{Way: way, Socket: on.socket, Member: member, Items: items})
		if err != nil {
			return nil, err
		}
		own, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return follow(exec.CommandContext(ctx, own, "-sharer", string(about)), member, of)
	}
}

//go:embed testdata/partitioner.py
var partitioner string

// kazooShares has members of processes of their own share by kazoo's recipe. KAZOO_PYTHON is an interpreter that has kazoo.
func kazooShares(addresses []string, items int) func(context.Context, string, *workBook) (func(kill bool), error) {
	return func(ctx context.Context, member string, of *workBook) (func(kill bool), error) {
		python := os.Getenv("KAZOO_PYTHON")
		if python == "" {
			return nil, errors.New("KAZOO_PYTHON is not set: make an environment with `python3 -m venv DIR && DIR/bin/pip install kazoo==2.11.0`")
		}
		command := exec.CommandContext(ctx, python, "-c", partitioner, strings.Join(addresses, ","), member, strconv.Itoa(items))
		return follow(command, member, of)
	}
}

// follow starts a member, and notes in the book what it says: +ITEM when it begins to work on an item, and -ITEM when it ends. It is killed with
// SIGKILL, and otherwise asked to leave.
func follow(command *exec.Cmd, member string, of *workBook) (leave func(kill bool), err error) {
	command.SysProcAttr = attributes()
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			sign, item, err := parseSaid(lines.Text())
			switch {
			case err != nil:
			case sign == '+':
				of.takes(item, member)
			default:
				of.leaves(item, member)
			}
		}
		_ = command.Wait()
		of.dies(member)
	}()
	return func(kill bool) {
		if kill {
			_ = command.Process.Kill()
		} else {
			_ = command.Process.Signal(os.Interrupt)
		}
		<-over
	}, nil
}

func parseSaid(line string) (sign byte, item int, err error) {
	if line == "" {
		return 0, 0, errors.New("an empty line")
	}
	item, err = strconv.Atoi(line[1:])
	return line[0], item, err
}

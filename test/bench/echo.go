package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// An echoServer is this program again, as a gRPC server with nothing behind it, on a Unix socket.
type echoServer struct {
	command *exec.Cmd
	orders  io.Closer // it ends when this is closed
	socket  string
}

// startEcho starts one, which listens in this directory. The caller must stop it.
func startEcho(ctx context.Context, directory string) (*echoServer, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	e := &echoServer{socket: filepath.Join(directory, "echo.sock")}
	e.command = exec.Command(program, "-echo", e.socket)
	e.command.Stderr = os.Stderr
	e.command.SysProcAttr = attributes()
	if e.orders, err = e.command.StdinPipe(); err != nil {
		return nil, err
	}
	if err := e.command.Start(); err != nil {
		return nil, err
	}
	for {
		connection, err := new(net.Dialer).DialContext(ctx, "unix", e.socket)
		if err == nil {
			return e, connection.Close()
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			e.stop()
			return nil, fmt.Errorf("the echo does not serve: %w", err)
		}
	}
}

func (e *echoServer) stop() {
	e.orders.Close()
	e.command.Wait() // it says what failed
}

// echo answers whatever it is asked.
type echo struct {
	healthv1.UnimplementedHealthServer
}

func (echo) Check(context.Context, *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	return &healthv1.HealthCheckResponse{Status: healthv1.HealthCheckResponse_SERVING}, nil
}

// serveEcho is the other program. It serves until its input ends.
func serveEcho(socket string, input io.Reader) error {
	os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	healthv1.RegisterHealthServer(server, echo{})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	_, _ = io.Copy(io.Discard, input)
	server.Stop()
	return <-served
}

package ensemble

import (
	"context"
	"os/exec"
)

// Java is a command that runs a program which uses ZooKeeper's classes: the name of a main class or a source file, and its
// arguments. A source file takes a Java development kit. The end of ctx kills it.
func (e *Ensemble) Java(ctx context.Context, program string, arguments ...string) *exec.Cmd {
	return exec.CommandContext(ctx, e.java, append([]string{
		"-Xmx96m", "-XX:+ExitOnOutOfMemoryError", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", e.classPath, program,
	}, arguments...)...)
}

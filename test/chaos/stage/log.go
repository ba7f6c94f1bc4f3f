package stage

import "os"

// pipe is how many bytes wait for the reader of a sidecar's log.
const pipe = 4 << 10

// A logPipe is where one process writes its log. Close returns when all of that has been read.
type logPipe struct {
	*os.File
	read <-chan struct{}
}

func (l *logPipe) Close() error {
	err := l.File.Close()
	<-l.read
	return err
}

// readLog makes the pipe of a process, which takes little while the host is deaf.
func (h *Host) readLog() (*logPipe, error) {
	log, err := os.OpenFile(h.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	from, to, err := os.Pipe()
	if err != nil {
		log.Close()
		return nil, err
	}
	narrow(to)
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer log.Close()
		defer from.Close()
		for lines := make([]byte, pipe); err == nil; {
			var n int
			n, err = from.Read(lines)
			h.hearing.RLock()
			_, _ = log.Write(lines[:n])
			h.hearing.RUnlock()
		}
	}()
	return &logPipe{to, read}, nil
}

// Deafen leaves what the sidecar logs unread, until Hear.
func (h *Host) Deafen() { h.hearing.Lock() }

// Hear ends Deafen.
func (h *Host) Hear() { h.hearing.Unlock() }

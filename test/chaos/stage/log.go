package stage

import "os"

// pipe is how many bytes wait for the reader of a sidecar's log.
const pipe = 4 << 10

// readLog returns where a sidecar writes its log: to a pipe, which takes little while the host is deaf. Whoever starts the sidecar closes it.
func (h *Host) readLog() (*os.File, error) {
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
	go func() {
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
	return to, nil
}

// Deafen has nobody read what the sidecar logs, until Hear.
func (h *Host) Deafen() { h.hearing.Lock() }

// Hear ends Deafen.
func (h *Host) Hear() { h.hearing.Unlock() }

package caller

import "sync"

// Shares counts what each identity has of something of which one may have only so much.
type Shares struct {
	most int

	mu  sync.Mutex
	has map[string]int
}

// NewShares makes one. If most is 0, an identity may have any number.
func NewShares(most int) *Shares { return &Shares{most: most, has: map[string]int{}} }

// Most is how many one identity may have; 0 for any number.
func (s *Shares) Most() int { return s.most }

// Add gives the identity so many more, or takes them if number is negative, unless it would then have more than it may. Taking never fails.
func (s *Shares) Add(identity string, number int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sum := s.has[identity] + number; number > 0 && s.most > 0 && sum > s.most {
		return false
	} else if sum > 0 {
		s.has[identity] = sum
	} else {
		delete(s.has, identity)
	}
	return true
}

package caller

import "sync"

// Shares counts what each identity has of something of which one may have only so much.
type Shares struct {
	most func(identity string) int

	mu  sync.Mutex
	has map[string]int
}

// NewShares makes one. Where most is 0, or nil, an identity may have any number.
func NewShares(most func(identity string) int) *Shares {
	if most == nil {
		most = func(string) int { return 0 }
	}
	return &Shares{most: most, has: map[string]int{}}
}

// Most is how many the identity may have; 0 for any number.
func (s *Shares) Most(identity string) int { return s.most(identity) }

// AddInAnyCase gives the identity so many more, even more than it may have.
func (s *Shares) AddInAnyCase(identity string, number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.has[identity] += number
}

// Add gives the identity so many more, or takes them if number is negative, unless it would then have more than it may. Taking never fails.
func (s *Shares) Add(identity string, number int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.has[identity] + number
	if number > 0 {
		if most := s.most(identity); most > 0 && sum > most {
			return false
		}
	}
	if sum > 0 {
		s.has[identity] = sum
	} else {
		delete(s.has, identity)
	}
	return true
}

package console

import "time"

// The last hour is kept in spans, in which one sees the most that there was. It takes 5 KiB, whatever goes on.
const (
	spans = 120
	span  = 30 * time.Second
)

// unknown is a number of a span in which it was not seen.
const unknown = -1

// A record is what was seen in one span.
type record struct {
	number                 int64 // of the span, from 1; 0 if nothing was seen
	waiting, longest, lost float64
	away                   bool // without contact, at some moment of it
}

// A history is the last hour.
type history struct {
	begun   time.Time
	records [spans]record
	before  int  // how much the sidecar had lost when it was seen last
	counted bool // whether it was seen at all
	lostAt  time.Time
}

// A chart is a history as the page draws it: the oldest span first, the last one not over yet.
type chart struct {
	Span    float64   `json:"span"` // seconds
	Waiting []float64 `json:"waiting"`
	Longest []float64 `json:"longest"`
	Lost    []float64 `json:"lost"`
	Away    []bool    `json:"away"`
}

func (h *history) spanOf(now time.Time) int64 { return 1 + int64(now.Sub(h.begun)/span) }

// of is the record of a span, which is empty unless something was noted there.
func (h *history) of(number int64) *record {
	kept := &h.records[number%spans]
	if kept.number != number {
		*kept = record{number: number, waiting: unknown, longest: unknown, lost: unknown}
	}
	return kept
}

// noteWaits notes how many callers wait, and how long the first of them has waited.
func (h *history) noteWaits(now time.Time, waiting int, longest float64) {
	kept := h.of(h.spanOf(now))
	kept.waiting, kept.longest = max(kept.waiting, float64(waiting)), max(kept.longest, longest)
}

// noteAway notes that there is no contact.
func (h *history) noteAway(now time.Time) { h.of(h.spanOf(now)).away = true }

// noteLosses notes how much a sidecar has lost since it has begun. What it had lost before it was first seen belongs to no span.
func (h *history) noteLosses(now time.Time, total int) {
	kept := h.of(h.spanOf(now))
	kept.lost = max(kept.lost, 0)
	if total < h.before { // it has begun anew
		h.before = 0
	}
	if h.counted && total > h.before {
		kept.lost += float64(total - h.before)
		h.lostAt = now
	}
	h.before, h.counted = total, true
}

func (h *history) chart(now time.Time) chart {
	drawn := chart{Span: span.Seconds()}
	last := h.spanOf(now)
	for number := last - spans + 1; number <= last; number++ {
		kept := record{waiting: unknown, longest: unknown, lost: unknown}
		if number > 0 && h.records[number%spans].number == number {
			kept = h.records[number%spans]
		}
		drawn.Waiting, drawn.Longest = append(drawn.Waiting, kept.waiting), append(drawn.Longest, kept.longest)
		drawn.Lost, drawn.Away = append(drawn.Lost, kept.lost), append(drawn.Away, kept.away)
	}
	return drawn
}

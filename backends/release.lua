-- The request leaves, and nobody waits (else: pass_on.lua). Repeatable; unknown requests are fine.
-- KEYS[last]: the request's tombstone. ARGV[5..]: request, unsure (1: an acquire of it may still be on its way), work done (-1: the
-- estimate stands).
local TOMBSTONE_TTL = 30000 -- ms; longer than a command can linger on a connection that was given up
local request, unsure, worked = ARGV[5], ARGV[6] == '1', tonumber(ARGV[7])
local slot = slot_of(request)
if unsure or not slot then redis.call('SET', KEYS[#KEYS], '1', 'PX', TOMBSTONE_TTL) end

if slot and slot.arrival == 0 and slot.asked == 0 and redis.call('HLEN', WAITING) == 0 then
  vacate(request, slot)
  if worked >= 0 then charge(slot.class .. ' ' .. slot.account, worked - slot.estimate, slot.since) end
  return 1
end


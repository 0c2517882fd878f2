-- The request leaves: its slot or its place goes to whoever waits. Repeatable; unknown requests are fine.
-- KEYS[last]: the request's tombstone. ARGV[4..]: request, unsure (1: an acquire of it may still be on its way).
local TOMBSTONE_TTL = 30000 -- ms; longer than a command can linger on a connection that was given up
local request, unsure = ARGV[4], ARGV[5] == '1'

local replica = holder_of(request)
local found = 0
if replica then
  redis.call('HDEL', SLOTS, request)
  if redis.call('HINCRBY', N, replica, -1) <= 0 then redis.call('HDEL', N, replica) end
  found = 1
else
  found = forget(request)
end
if found == 0 or unsure then redis.call('SET', KEYS[#KEYS], '1', 'PX', TOMBSTONE_TTL) end
serve()
return found

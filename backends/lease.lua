-- The calling gateway lives for ARGV[3] ms more. Returns how many wait, the gateways that live (for the grants lists of the next
-- calls), and the calling gateway's grants that should have been claimed by now: their wake-ups were lost.
local CLAIMED_BY = 250 -- ms
redis.call('ZADD', LEASES, now + tonumber(ARGV[3]), GATEWAY)
local lost = {}
for _, member in ipairs(redis.call('ZRANGEBYLEX', INDEX, '[u ', '[' .. entry('u', now - CLAIMED_BY, '~'))) do
  local request = string.match(member, '(%S+)$')
  if slot_of(request).gateway == GATEWAY then lost[#lost + 1] = request end
end
return { redis.call('HLEN', WAITING), redis.call('ZRANGEBYSCORE', LEASES, '(' .. string.format('%d', now), '+inf'), lost }

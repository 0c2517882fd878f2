-- The calling gateway lives for ARGV[3] ms more. Returns how many wait, and the gateways that live, for the grants lists of the next calls.
redis.call('ZADD', LEASES, now + tonumber(ARGV[3]), GATEWAY)
return { redis.call('HLEN', WAITING), redis.call('ZRANGEBYSCORE', LEASES, '(' .. string.format('%d', now), '+inf') }

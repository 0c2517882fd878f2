-- The calling gateway lives for ARGV[4] ms more. Returns the gateways that live, for the grants lists of the next calls.
redis.call('ZADD', LEASES, now + tonumber(ARGV[4]), GATEWAY)
return redis.call('ZRANGEBYSCORE', LEASES, '(' .. string.format('%d', now), '+inf')

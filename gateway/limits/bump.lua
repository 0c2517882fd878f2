-- Raises an account's version, never lowers it. A hash that is missing gets just the version and stays cold: a seed
-- that read the record before the change would otherwise bring the old version back.
-- KEYS account; ARGV version. Returns the version that holds now.
local version, now = tonumber(ARGV[1]), tonumber(redis.call('HGET', KEYS[1], 'v') or 0)
if version <= now then return now end
redis.call('HSET', KEYS[1], 'v', version)
if redis.call('TTL', KEYS[1]) < 0 then redis.call('EXPIRE', KEYS[1], 259200) end
return version

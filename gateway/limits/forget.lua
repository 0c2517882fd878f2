-- Drops what an older epoch remembers of this gateway's holds: those still open were put back under the new nonce just before,
-- the others have ended, and their ends are sent again or are in the ledger. They counted nowhere; now they are gone.
-- KEYS epoch, holds of the gateway; ARGV nonce. Returns how many were dropped.
if redis.call('HGET', KEYS[1], 'nonce') ~= ARGV[1] then return 0 end
local holds = redis.call('HGETALL', KEYS[2])
local dropped = 0
for i = 1, #holds, 2 do
  if cjson.decode(holds[i + 1])[9] ~= ARGV[1] then
    dropped = dropped + redis.call('HDEL', KEYS[2], holds[i])
  end
end
return dropped

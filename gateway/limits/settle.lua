-- The one end of a call: counters move only if its hold is here, the event is appended always (the ledger drops repeats).
-- KEYS epoch, holds of the gateway, tombstone, account, key, events
-- ARGV request id, verdict (posted, voided, hangup), reason, event, free hang-ups (-1: all), tombstone ms
-- Returns stream id, final verdict, 1 if the hold was here, nonce.
local packed = redis.call('HGET', KEYS[2], ARGV[1])
local verdict, give_back = ARGV[2], nil
if packed then
  verdict, give_back = close(cjson.decode(packed), verdict, KEYS[4], KEYS[5], tonumber(ARGV[5]))
elseif verdict == 'hangup' then
  verdict = 'voided'
end
-- First what could be refused: then nothing has changed, and the call can be settled again.
local id = redis.call('XADD', KEYS[6], '*', 'id', ARGV[1], 'v', verdict, 'r', ARGV[3], 'e', ARGV[4])
if packed then
  redis.call('HDEL', KEYS[2], ARGV[1])
  give_back()
else
  redis.call('SET', KEYS[3], '1', 'PX', ARGV[6]) -- an admit that was overtaken must not take anything any more
end
return {id, verdict, packed and 1 or 0, redis.call('HGET', KEYS[1], 'nonce') or ''}

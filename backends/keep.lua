-- The gateway that was asked to give a call's slot back keeps it: the next one is asked. ARGV[5]: request.
local slot = slot_of(ARGV[5])
if slot and slot.asked > 0 then redis.call('ZREM', INDEX, entry('o', slot.asked, ARGV[5])) end
recall()
return 1
